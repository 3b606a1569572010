"""DSPy: a predictor with four demos in front of its history."""

import os

import dspy
from lines import TOWNS, converse


class Answer(dspy.Signature):
    """Answer in the house style."""

    history: dspy.History = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


dspy.configure(lm=dspy.LM("openai/turnfold", api_base=os.environ["OPENAI_BASE_URL"], cache=False))
predict = dspy.Predict(Answer)
predict.demos = [dspy.Example(question=f"Which town has   {town}?", answer=f"{town} itself.") for town in TOWNS]
asked = []


def ask(question: str) -> str:
    answer = predict(history=dspy.History(messages=asked), question=question).answer
    asked.append({"question": question, "answer": answer})
    return answer


converse(ask)
