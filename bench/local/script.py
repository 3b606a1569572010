"""Twenty messages about one thing, an office that moves, as somebody might type them."""

from __future__ import annotations

from typing import Final

MESSAGES: Final = (
    "We are moving our office in March: 46 people, from Harbour Street 12 to the third floor of Mill House. The lease of the old office ends on 31 March. I need a plan that I can hand to Priya, who leads the move. Where should I begin?",
    "The budget is 38,000 euros, and 9,500 of it are already promised to the electrician, Mr. Okafor. Please never plan work on a Friday afternoon, as the building is closed then. What is missing from the plan?",
    "The server room is the hard part. There are two racks, A7 and A9, and only A7 may be switched off during the week. What would you do first?",
    "Good. The network provider says the new line, contract NL-20418, is ready on 4 March at the earliest. Does that change the order of things?",
    "Let us say the racks move on 14 March, a Saturday. Priya wants to know who has to be there. I thought of Tomas and Ewa. Is that enough?",
    "Tomas is on leave until the 16th, so it will be Ewa and Jun. What should they have at hand that day? Keep it to five things at most.",
    "The furniture firm, Brandt & Sons, offers two dates: 7 March or 21 March. They charge 4,200 euros, and 600 more for the meeting room tables. Which date is better for us, and why?",
    "We take the 21st then. Please note that the meeting room tables stay behind. How do we tell everybody what to pack, and when?",
    "Write the message for the team in at most four sentences. It should say that boxes come on 16 March and that each person gets three of them.",
    "Leila asks about the kitchen. The new one has no dishwasher, and the landlord wants a plan before anything is installed. Who should talk to him?",
    "It will be Leila herself. The landlord is Mr. Haugen, and he answers only by letter. What has to be in the letter?",
    "The insurance wants a list of everything above 1,000 euros. We have 61 laptops, 14 screens of that price, and the two racks. How do I make that list without walking about for days?",
    "Jun found out that A9 has a failing fan. Should it be repaired before the move or after it? A new one costs 180 euros and takes five days to come.",
    "Order it now, then. What did we say the day for the racks was, and what else happens in that week?",
    "The old office has to be handed back clean. A firm asks 1,150 euros for it, another 890 without the windows. There are 22 windows. Which one?",
    "Priya would like to know how much of the budget is left after all of this. Please count it up step by step.",
    "Someone has to change the address with the bank, the tax office and about 30 suppliers. Make a short list of who comes first.",
    "The keys: we have 46 old ones, and the new house works with cards. The cards are ready on 18 March. What do people do who come in earlier?",
    "Let us plan the first morning, Monday 30 March. What could go wrong, and who should be asked in each case?",
    "Please sum up what is still open, with the name of whoever has to do it, so that I can send it to Priya today.",
)
