"""One package, so that its fixtures end before the tests of another begin."""
