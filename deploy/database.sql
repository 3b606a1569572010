-- Makes the role and the database of Turnfold in a new Postgres, by psql. The role is no superuser, and its limits hold
-- for all its connections: as parameters of a connection PgBouncer would refuse them.
\set password `cat "${SECRETS:-/run/secrets}"/pgpassword`
CREATE ROLE turnfold LOGIN PASSWORD :'password';
ALTER ROLE turnfold SET statement_timeout = '30s';
ALTER ROLE turnfold SET lock_timeout = '5s';
ALTER ROLE turnfold SET idle_in_transaction_session_timeout = '30s';
CREATE DATABASE turnfold OWNER turnfold;
REVOKE ALL ON DATABASE turnfold FROM PUBLIC;
