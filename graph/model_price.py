"""The prices of models, as `MODEL_PRICES` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn

PRICED_TOKENS: Final = 1_000_000
CURRENCY_CHARS: Final = 8
_HIGHEST: Final = Decimal(1_000_000)
# So that sums stay exact: with the digits of a price and those of the tokens they fit into a Decimal.
_DECIMALS: Final = 9
_SHAPE: Final = 'takes {"currency": "USD", "models": {"name": {"input": 2.5, "output": 10, "cached": 1.25}}}'


@dataclass(frozen=True)
class ModelPrice:
    """What a million tokens of a model cost.

    Attributes:
        input: Read anew.
        output: Written.
        cached: Read from the provider's cache.
    """

    input: Decimal
    output: Decimal
    cached: Decimal


@dataclass(frozen=True)
class PriceList:
    """The prices of a server's models.

    Attributes:
        currency: Their currency, as it is shown.
        models: By the model's name.
    """

    currency: str
    models: Mapping[str, ModelPrice]


def read_prices(text: str) -> PriceList:
    """Returns the prices of a JSON object: a currency, and for each model what a million tokens cost.

    Args:
        text: `{"currency": "USD", "models": {"name": {"input": 2.5, "output": 10, "cached": 1.25}}}`; without
            "cached" that is the price of the input.

    Raises:
        ValueError: It has another form; the message says which one is taken, and what isn't right.
    """
    try:
        read = json.loads(
            text, parse_float=Decimal, parse_int=Decimal, parse_constant=Decimal, object_pairs_hook=_object
        )
    except (ValueError, ArithmeticError, RecursionError):
        _refuse("this is no JSON, or names something twice")
    if not isinstance(read, dict) or read.keys() != {"currency", "models"}:
        _refuse("the whole is an object of currency and models")
    currency, models = read["currency"], read["models"]
    if not isinstance(currency, str) or not _is_currency(currency):
        _refuse(f"the currency is 1 to {CURRENCY_CHARS} characters without spaces")
    if not isinstance(models, dict) or not models:
        _refuse("the models are an object with one of them at least")
    return PriceList(currency, {name: _price(name, price) for name, price in models.items()})


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) < len(pairs):
        msg = "a name stands there twice"
        raise ValueError(msg)
    return read


def _is_currency(text: str) -> bool:
    return 0 < len(text) <= CURRENCY_CHARS and text.isprintable() and " " not in text


def _price(name: str, price: object) -> ModelPrice:
    if not isinstance(price, dict) or not {"input", "output"} <= price.keys() <= {"input", "output", "cached"}:
        _refuse(f"{name!r} has an input, an output and perhaps a cached price")
    read = {"cached": price["input"], **price}
    if not all(map(_is_amount, read.values())):
        _refuse(f"each price of {name!r} is a number from 0 to {_HIGHEST:,} of at most {_DECIMALS} decimals")
    return ModelPrice(**read)


def _is_amount(value: object) -> bool:
    if not isinstance(value, Decimal) or not value.is_finite() or not 0 <= value <= _HIGHEST:
        return False
    return value == round(value, _DECIMALS)


def _refuse(reason: str) -> NoReturn:
    msg = f"{_SHAPE}, prices per million tokens; {reason}"
    raise ValueError(msg) from None
