"""The rules of a project that an owner has agreed to, and nothing else of what stands on the disk."""

from __future__ import annotations

import logging

from pydantic import ValidationError

from graph.layer.rule_set import RuleSet
from graph.store.rule_agreement import RuleAgreement

_LOG = logging.getLogger(__name__)


def agreed_rules(agreement: RuleAgreement | None) -> RuleSet:
    """Returns the agreed set; an empty one without an agreement, or if its row can't be read."""
    if agreement is None:
        return RuleSet()
    try:
        return RuleSet.model_validate_json(agreement.rules)
    except ValidationError:
        _LOG.warning("the agreement of %s can't be read, and counts as none", agreement.decided_at)
        return RuleSet()
