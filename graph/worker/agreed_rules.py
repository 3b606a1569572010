"""The rules of a project that an owner has agreed to, and nothing else of what stands on the disk."""

from __future__ import annotations

from graph.layer.rule_set import RuleSet
from graph.store.rule_agreement import RuleAgreement


def agreed_rules(agreement: RuleAgreement | None) -> RuleSet:
    """Returns the agreed set, an empty one without an agreement."""
    return RuleSet() if agreement is None else RuleSet.model_validate_json(agreement.rules)
