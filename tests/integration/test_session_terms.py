from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from graph.core.weight import count_terms
from graph.model.summariser import ExtractiveSummariser
from graph.worker.session_terms import SessionTerms
from tests.fake.open_chat import OpenChat
from tests.fake.scripted_model import ScriptedChat, scripted_models
from tests.fake.store import SESSION, StoreSet

OFTEN = "The lantern hangs beside the wooden door."
ONCE = "The anchor hangs beside the rusted gate."


def test_terms_are_those_of_all_live_messages_said_so_far(stores: StoreSet) -> None:
    lease = stores.make_session()
    terms = SessionTerms(stores.archive)
    assert terms.counts(SESSION) == count_terms([])
    turn = stores.begin(lease, "q1", OFTEN)
    assert terms.counts(SESSION) == count_terms([OFTEN])
    stores.say(lease, turn, AIMessage(ONCE, id="a1"))
    assert terms.counts(SESSION) == count_terms([OFTEN, ONCE])
    assert terms.counts(SESSION) == count_terms([OFTEN, ONCE])
    assert terms.counts("another") == count_terms([])


def test_terms_of_a_deleted_session_are_counted_anew(stores: StoreSet) -> None:
    lease = stores.make_session()
    terms = SessionTerms(stores.archive)
    stores.begin(lease, "q1", OFTEN)
    terms.counts(SESSION)
    stores.turns.finish(lease, 1, "finished")
    terms.forget(SESSION)
    assert terms.counts(SESSION) == count_terms([OFTEN])


def test_a_fold_prefers_what_is_rare_in_its_session(open_chat: OpenChat) -> None:
    chat = open_chat(models=scripted_models(ScriptedChat(), ExtractiveSummariser()), compression_rate=0.15)
    block = [
        f"{ONCE} {OFTEN}",
        "Good, thank you for that, it is nice to hear. " + "We are all glad of it, as we were before. " * 2,
        "And so we go on as before, all of us. " + "It is fine as it is, and we like it so. " * 2,
    ]
    for text in [OFTEN] * 3 + block:
        chat.say(text)
        chat.wait_for_folds()
    chat.say("Go on, please.")
    _, second = chat.service.folds.records(chat.session_id)
    alone = ExtractiveSummariser().summarise([HumanMessage(text) for text in block], second.target_chars).text
    assert (OFTEN in alone, ONCE in alone) == (True, False)
    assert (OFTEN in second.summary, ONCE in second.summary) == (False, True)
