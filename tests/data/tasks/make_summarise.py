"""Writes summarise.jsonl: short news articles and the facts that a summary must not lose, written for this project.

    python3 make_summarise.py > summarise.jsonl

Twelve stories are written by hand, each with nine sets of particulars. A fact is a list of texts of which the summary must
have one.
"""
import json

TOWNS = ["Elmstead", "Port Darrow", "Lindau", "Castle Rock", "Vernon", "Oakham", "Riverton", "Saltford", "Greenville"]

STORIES = [
    ("A new {0} was opened in {town} on Saturday after three years of building. The mayor cut the ribbon in front of several "
     "hundred "
     "people. The {0} cost {1} million euros, half of which came from the regional government. Critics had said that the "
     "money would be "
     "better spent on schools. On the first day, entrance was free, and the queue reached all the way to the market square. "
     "The town hopes "
     "that it will bring more visitors in the coming years.",
     [("library", 12), ("swimming pool", 9), ("bridge", 31), ("museum", 24), ("bus station", 7), ("concert hall", 45),
      ("sports hall", 14),
      ("market hall", 6), ("youth centre", 3)],
     lambda v, town: [[v[0]], [town], [f"{v[1]} million"]]),
    ("Firefighters in {town} were called to {0} early on Tuesday morning. The fire had started in the kitchen, most likely "
     "because of {1}. "
     "Thirty people had to leave the building in their night clothes. Nobody was hurt, but the damage is thought to be "
     "considerable. It took "
     "the crews about two hours to put the fire out. The police are still looking into what exactly happened.",
     [("a hotel", "a faulty toaster"), ("a nursing home", "an old cable"), ("a school", "a gas leak"), ("a restaurant",
                                                                                                        "burning oil"),
      ("a block of flats", "a candle"), ("a hostel", "a broken oven"), ("an office tower", "a coffee machine"), ("a bakery",
                                                                                                                 "a short "
                                                                                                                 "circuit"),
      ("a farmhouse", "a cigarette")],
     lambda v, town: [["fire"], [v[0].split(" ", 1)[1]], [v[1].split(" ", 1)[-1]], ["Nobody", "no one", "no injuries",
                                                                                    "not hurt", "unhurt"]]),
    ("{0} from {town} has won the national {1} championship at the age of only {2}. In the final, she beat last year's "
     "champion after a long "
     "and close contest. She began to train when she was six, in the garage of her grandfather. Her coach said that he had "
     "never seen such "
     "patience in a young person. Next year she will take part in the European championship. For now, she wants to "
     "concentrate on school.",
     [("Mira Olsen", "chess", 15), ("Ella Grant", "fencing", 17), ("Tessa Brandt", "judo", 16), ("Lena Fischer", "climbing",
                                                                                                 14),
      ("Ruth Adeyemi", "table tennis", 13), ("Carla Nunes", "archery", 18), ("Ivy Turner", "darts", 16), ("Sofia Rossi",
                                                                                                          "skating", 15),
      ("Hanna Virtanen", "diving", 17)],
     lambda v, town: [[v[0], v[0].split()[1]], [v[1]], [str(v[2])]]),
    ("The {0} company {1} will close its plant in {town} at the end of the year. About {2} people will lose their jobs. The "
     "management says "
     "that energy has become too expensive and that orders from abroad have fallen. The union called the decision a slap in "
     "the face and "
     "announced protests. The regional government wants to talk with the company about other ways. The plant was founded in "
     "1961 and was "
     "long the largest employer of the area.",
     [("glass", "Vitra", 420), ("paper", "Norpap", 310), ("steel", "Harlan", 900), ("furniture", "Birkwood", 150), ("tyre",
                                                                                                                    "Rolo",
                                                                                                                    670),
      ("chocolate", "Dulcia", 230), ("engine", "Morand", 540), ("textile", "Fabrix", 280), ("toy", "Pippa", 120)],
     lambda v, town: [[v[1]], [town], [str(v[2])], ["clos", "shut"]]),
    ("Researchers at the University of {town} have found that {0} sleep far longer than was thought. They watched {1} "
     "animals with small "
     "cameras for a whole year. On average, the animals slept {2} hours a day, mostly in short naps. The scientists believe "
     "that this helps "
     "them to save energy in winter. The study was published in a journal for animal behaviour. The team now wants to repeat "
     "its work with "
     "other species.",
     [("foxes", 40, 13), ("hedgehogs", 62, 18), ("otters", 25, 11), ("badgers", 33, 15), ("squirrels", 80, 14), ("owls", 28,
                                                                                                                 12),
      ("beavers", 19, 11), ("hares", 51, 9), ("lynxes", 12, 16)],
     lambda v, town: [[v[0], v[0].rstrip("s")], ["sleep", "slept"], [str(v[2])]]),
    ("From {0} on, buses and trams in {town} will be free for everybody under {1}. The council decided this on Wednesday "
     "with a small "
     "majority. It expects that traffic in the centre will go down and that the air will become cleaner. The plan will cost "
     "around two million "
     "a year, which is to be paid by higher parking fees. Shop owners fear that fewer customers will come by car. After two "
     "years, the council "
     "will look at the results and decide whether to go on.",
     [("January", 18), ("March", 25), ("September", 21), ("June", 16), ("October", 27), ("April", 20), ("August", 19), ("May",
                                                                                                                        26),
      ("November", 14)],
     lambda v, town: [["free"], [f"under {v[1]}", f"{v[1]}"], [v[0]]]),
    ("A {0} that had escaped from a private garden kept the police in {town} busy on Sunday. Walkers had seen the animal "
     "near {1} and called "
     "for help. Four officers tried to catch it with a net, but it was too quick for them. In the end, a veterinarian put it "
     "to sleep with a "
     "dart. The {0} was not harmed and is back with its owner. He will have to pay for the operation.",
     [("kangaroo", "the golf course"), ("llama", "the motorway"), ("peacock", "the cemetery"), ("goat", "the railway station"),
      ("ostrich", "the airport"), ("pony", "the canal"), ("reindeer", "the shopping centre"), ("emu", "the stadium"),
      ("donkey", "the harbour")],
     lambda v, town: [[v[0]], ["escape"], [v[1].split(" ", 1)[1]]]),
    ("The {0} in {town} has to close for at least {1} months. During an inspection, experts found cracks in the roof that "
     "make it unsafe. "
     "Repairs cannot begin before spring because the special parts must be ordered first. All events have been cancelled or "
     "moved to other "
     "places. Visitors who have already paid will get their money back. The director said that safety had to come first.",
     [("opera house", 8), ("cathedral", 14), ("aquarium", 5), ("ice rink", 6), ("theatre", 10), ("art gallery", 7),
      ("planetarium", 9),
      ("town hall", 4), ("indoor market", 11)],
     lambda v, town: [[v[0]], ["clos", "shut"], [f"{v[1]} months"], ["crack", "roof", "unsafe"]]),
    ("A farmer near {town} has found {0} while he was ploughing his field. Archaeologists say that the find is about {1} "
     "years old and in "
     "excellent condition. It will be cleaned and studied for some months. Afterwards it will be shown in the local museum. "
     "The farmer, whose "
     "name was not made public, will get a reward. He said that at first he had taken it for an old bucket.",
     [("a gold cup", "2,000"), ("a Roman helmet", "1,800"), ("a bronze sword", "3,000"), ("a silver bowl", "1,200"),
      ("a Viking ring", "1,000"),
      ("a Celtic shield", "2,300"), ("an iron crown", "900"), ("a stone statue", "4,000"), ("a Roman coin hoard", "1,700")],
     lambda v, town: [[v[0].split(" ", 1)[1]], ["farmer"], [v[1], v[1].replace(",", "")]]),
    ("Heavy rain has flooded large parts of {town} since {0}. The river rose by {1} metres within a few hours and broke "
     "through a dam. "
     "More than a thousand people had to be brought to safety, some of them by boat. Schools and shops remain closed. The "
     "weather service "
     "expects that the rain will stop on Friday. The government has promised quick help for those who lost their homes.",
     [("Monday", "four"), ("Tuesday", "three"), ("Wednesday", "five"), ("Sunday", "two"), ("Thursday", "six"), ("Saturday",
                                                                                                                "three"),
      ("Monday", "five"), ("Tuesday", "four"), ("Sunday", "seven")],
     lambda v, town: [["flood"], [town], ["thousand", "1,000", "1000"]]),
    ("{0}, one of the best-known {1} of the country, has died at the age of {2}. The family said that she passed away "
     "peacefully at her home in "
     "{town}. She became famous in the seventies and was awarded many prizes. Colleagues remember her as generous and full "
     "of humour. In her "
     "last years she taught young people and rarely appeared in public. The funeral will take place next week with close "
     "friends only.",
     [("Greta Lund", "painters", 91), ("Maria Conti", "singers", 84), ("Ada Willis", "writers", 88), ("Irene Kovac", "actors",
                                                                                                      79),
      ("Joan Pell", "architects", 95), ("Edith Moreau", "dancers", 82), ("Nora Steen", "poets", 90), ("Vera Holt", "pianists",
                                                                                                      86),
      ("Lucia Marin", "sculptors", 93)],
     lambda v, town: [[v[0], v[0].split()[1]], ["died", "dead", "death", "passed away"], [str(v[2])]]),
    ("The school meals in {town} will be cooked with {0} from local farms from now on. So far, most of the food came frozen "
     "from a factory "
     "{1} kilometres away. The change was started by a group of parents who collected {2} signatures. A meal will cost forty "
     "cents more, but "
     "children from poor families will eat for free. The cooks say that they have more work and more joy. Two other towns "
     "have already asked "
     "how it is done.",
     [("vegetables", 300, "1,200"), ("eggs and milk", 250, "800"), ("fruit", 410, "2,500"), ("potatoes", 180, "640"), ("meat",
                                                                                                                       520,
                                                                                                                       "3,100"),
      ("bread and cheese", 90, "950"), ("fish", 700, "1,750"), ("organic food", 360, "4,000"), ("rice and beans", 600,
                                                                                                "1,100")],
     lambda v, town: [["school"], [v[0]], ["local", "farm"], ["parents", v[2]]]),
]

for i in range(9):
    for k, (form, particulars, facts) in enumerate(STORIES):
        town = TOWNS[(i + k) % len(TOWNS)]
        values = particulars[i]
        print(json.dumps({"input": form.format(*values, town=town), "facts": facts(values, town)}, ensure_ascii=False))
