"""Writes extract.jsonl: notices of events and their fields, written for this project.

    python3 make_extract.py > extract.jsonl

Events, places and the ways to say it are written by hand; who meets when is drawn with a fixed seed. Field values stand in
the text as they are, but for the price, which is a whole number; what a notice does not say is null.
"""
import json
import random

EVENTS = [
    ("book sale", "the town library"), ("jazz concert", "the Blue Door Club"), ("flea market", "Riverside Park"),
    ("chess tournament", "the Grand Hotel"), ("wine tasting", "Villa Moretti"), ("yoga class", "Studio Nine"),
    ("poetry reading", "Café Aurora"), ("school play", "Northfield School"), ("science fair", "Hall B of the university"),
    ("charity run", "the city stadium"), ("pottery workshop", "the Old Mill"), ("film night", "the Odeon"),
    ("farmers' market", "Market Square"), ("open day", "the fire station"), ("dance course", "the community centre"),
    ("photo exhibition", "Gallery Lind"), ("organ recital", "St. Mary's Church"), ("pub quiz", "the Red Lion"),
    ("first aid course", "the Red Cross building"), ("garden party", "the bishop's palace"), ("job fair",
                                                                                              "the exhibition hall"),
    ("computer course", "room 12 of the adult school"), ("choir rehearsal", "the parish hall"), ("swimming lesson",
                                                                                                 "the indoor pool"),
    ("cooking evening", "the Green Kitchen"), ("bike repair day", "Harbour Street 8"), ("magic show", "the Little Theatre"),
    ("lecture on whales", "the aquarium"), ("guided tour", "the castle gate"), ("puppet theatre", "the toy museum"),
    ("blood donation", "the county hospital"), ("language exchange", "the Globe Bar"), ("robot contest",
                                                                                        "the technical museum"),
    ("knitting circle", "Mrs. Byrne's wool shop"), ("stargazing night", "the observatory"),
]

DAYS = ["Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "4 May", "12 June", "21 September",
        "3 October",
        "Friday, 9 August", "Sunday, 17 March", "30 November", "1 July", "Tuesday, 5 February"]

TIMES = ["10 am", "7 pm", "half past six", "8:30 pm", "noon", "3 pm", "19:00", "9:15 am", "two o'clock", "5 pm"]

NOTICES = [
    "Join us for the {event} at {place} on {date}. We start at {time}. Tickets are {price} euros.",
    "On {date} there will be a {event} at {place}. It begins at {time} and costs {price} euros.",
    "{Event}! {date}, {time}, {place}. Entry: {price} euros.",
    "Dear neighbours, the {event} takes place on {date} at {place}. Doors open at {time}.",
    "Do not miss the {event} on {date}. Where? At {place}. How much? Only {price} euros.",
    "We are pleased to invite you to a {event}. Please come to {place} on {date} at {time}.",
    "Reminder: {event} on {date}, {time}. Meet at {place}. Bring {price} euros for the fee.",
    "The {event} that was planned for last week is now on {date}. The place has not changed: {place}.",
    "Looking for something to do on {date}? {place} hosts a {event} from {time}. Admission is {price} euros a person.",
    "Because of the rain, the {event} moves to {place}. Date and time stay as they were: {date}, {time}.",
    "Members pay {price} euros for the {event} on {date}. It is held at {place} and opens at {time}.",
    "Attention please: {event} at {place}, {date}. Seats are limited, so come early.",
    "Who would like to help with the {event}? It is on {date} at {time}, and we meet at {place}.",
    "Tickets for the {event} on {date} can be bought for {price} euros at the door of {place}.",
]


def capital(text):
    return text[0].upper() + text[1:]


def notice(draw, i):
    event, place = EVENTS[i % len(EVENTS)]
    form = NOTICES[(i * 5 + i // len(EVENTS)) % len(NOTICES)]
    at_start = form.startswith("Looking") or "{place} hosts" in form
    values = {"event": event, "date": draw.choice(DAYS), "time": draw.choice(TIMES), "place": place,
              "price": draw.choice([2, 3, 5, 6, 8, 10, 12, 15, 18, 20, 25])}
    shown = dict(values, Event=capital(event), place=capital(place) if at_start else place)
    data = {k: v if "{" + k + "}" in form else None for k, v in values.items()}
    data["event"] = shown["Event"] if "{Event}" in form else event
    data["place"] = shown["place"]
    return {"input": form.format(**shown), "data": data}


chance = random.Random(2024)
for number in range(105):
    print(json.dumps(notice(chance, number), ensure_ascii=False))
