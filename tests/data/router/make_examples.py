"""Writes examples.jsonl: labelled requests for the classifier of mica route, from templates. The same output every time.

    python3 tests/data/router/make_examples.py > tests/data/router/examples.jsonl

A group is one kind of task with its wordings and fillings. mica route train holds out whole groups, so that what is held out is
a kind of task that was not trained on, not one more filling of a wording that was. hand.jsonl, beside this file, was written by
hand, without templates, before any classifier was trained, and is never trained on.
"""
import json
import random
import sys

EACH = 14  # examples of a group

PLACES = ["Lisbon", "the north coast", "Berlin", "our office in Graz", "Osaka", "the village", "Boston", "platform 4"]
PEOPLE = ["Maria Lopez", "Mr. Tanaka", "my neighbour", "Dr. Weiss", "the plumber", "Aunt Vera", "our landlord", "Priya"]
THINGS = ["the blue jacket", "order 58213", "the dishwasher", "my subscription", "a set of four chairs", "the router", "two tickets",
          "the coffee grinder", "a used bicycle"]
DAYS = ["Monday", "next Friday", "March 3rd", "tomorrow at noon", "the 17th", "Saturday evening", "the first week of May"]
FEELINGS = ["arrived broken and nobody answers", "is the best thing I bought this year", "works, but the manual is useless",
            "never came, although I paid for it", "makes a strange noise since yesterday", "was cheaper than expected and looks great",
            "is fine I suppose", "smells of plastic and I want my money back"]
TOPICS = ["bees", "the harbour", "solar panels", "the new tram line", "sourdough", "a local election", "the library", "rain in August"]
FACTS = ["will be closed for repairs until the end of the month, the council said on Tuesday",
         "drew more visitors than last year, in spite of the weather, and sold out by Sunday",
         "costs a third less than planned because the old foundations could be used",
         "was opened again after eleven months, with longer hours and a small cafe",
         "has to move, since the owner of the building wants to sell it"]
FIELDS = ["the name, the date and the amount", "all phone numbers", "the product and its price", "the sender's address",
          "every date", "the company and the city", "order number and quantity"]
CODE = ["a linked list", "an LRU cache with a time limit", "a rate limiter", "a B-tree", "a job scheduler", "a small regex engine",
        "a thread pool", "an event bus", "a parser for arithmetic expressions"]
LANGUAGES = ["Python", "C", "Rust", "Go", "TypeScript", "SQL", "Java"]
TECH = ["a message queue", "event sourcing", "PostgreSQL", "microservices", "a monolith", "GraphQL", "server-side rendering",
        "optimistic locking", "a service mesh"]
IDEAS = ["universal basic income", "remote work", "nuclear power", "a four day week", "school uniforms", "free public transport",
         "open borders", "a wealth tax"]
NUMBERS = ["17", "240", "3,600", "0.75", "12", "96", "1,024"]


def text_about(r):
    return f"{r.choice(TOPICS).capitalize()} {r.choice(FACTS)}."


def opinion(r):
    return f"{r.choice(THINGS).capitalize()} {r.choice(FEELINGS)}."


def message(r):
    return (f"Hello, this is {r.choice(PEOPLE)} from {r.choice(PLACES)}. About {r.choice(THINGS)}: please call me back by "
            f"{r.choice(DAYS)}, {r.choice(['my number is 0171 555 0142', 'I owe you 48.50', 'the invoice is number 7731'])}.")


def fill(template, r):
    makers = {"text": text_about, "opinion": opinion, "message": message}
    lists = {"place": PLACES, "person": PEOPLE, "thing": THINGS, "day": DAYS, "topic": TOPICS, "fields": FIELDS, "code": CODE,
             "language": LANGUAGES, "tech": TECH, "tech2": TECH, "idea": IDEAS, "n": NUMBERS, "m": NUMBERS}
    out = template
    for name, make in makers.items():
        while "{" + name + "}" in out:
            out = out.replace("{" + name + "}", make(r), 1)
    for name, words in lists.items():
        while "{" + name + "}" in out:
            out = out.replace("{" + name + "}", r.choice(words), 1)
    return out


NARROW = {
    "sentiment": ["Is this review positive or negative? {opinion}", "Sentiment: {opinion}", "Rate the mood of this as good, bad or neutral: {opinion}"],
    "ticket": ["Which department should get this: billing, shipping or support? {message}", "Label this ticket. {opinion}",
               "Choose one category (refund, question, praise) for: {opinion}"],
    "spam": ["Spam or not spam? {message}", "Is this mail spam? Answer yes or no. {message}", "Flag it if it is advertising: {message}"],
    "language": ["What language is this sentence in? {text}", "Detect the language: {message}", "Which language? One word. {text}"],
    "urgent": ["Is this urgent? yes/no: {message}", "How urgent is it, 1 to 3? {message}", "Priority of this message, low or high: {opinion}"],
    "extract": ["Extract {fields} from: {message}", "Find {fields} in this text. {message}", "List {fields}. {message}"],
    "json": ["Return {fields} as JSON. {message}", "Fill this form {\"name\": \"\", \"date\": \"\"} from: {message}", "Turn it into JSON with the keys who and when: {message}"],
    "dates": ["Write the date in ISO format: {day}", "When is the appointment? {message}", "Normalise every date in: {message}"],
    "names": ["Who is mentioned here? {message}", "Names of people in this text: {message}", "Give me the person and the place. {message}"],
    "numbers": ["What amount is asked for? {message}", "Pull out all numbers: {message}", "Which invoice number is it? {message}"],
    "summary": ["Summarise in one sentence: {text} {text}", "TL;DR: {text} {text}", "Shorten this to twenty words. {text} {text} {text}"],
    "title": ["Give this a title of at most six words. {text}", "Headline for: {text}", "Subject line for this mail: {message}"],
    "keywords": ["Three keywords for: {text}", "Tag this article. {text} {text}", "Which topics does this mention? {text}"],
    "bullets": ["Make two bullet points of this: {text} {text}", "Key point? {text}", "What is the main fact here: {text}"],
    "redact": ["Remove names and phone numbers: {message}", "Black out personal data in this message. {message}", "Replace every name by [NAME]: {message}"],
    "contains": ["Does this contain personal data? {message}", "Is there a phone number in it? {message}", "Any address in here? {message}"],
    "weather": ["Will it rain in {place} on {day}?", "weather {place}", "How warm is it in {place}?"],
    "timer": ["Set a timer for {n} minutes", "Wake me at 6 on {day}", "Remind me to call {person} on {day}"],
    "home": ["Turn off the lights in the kitchen", "Dim the bedroom to {n} percent", "Heat the bathroom to 22 degrees on {day}"],
    "music": ["Play something by Nina Simone", "Louder please", "Next song", "Skip this and play {topic} radio"],
    "shopping": ["Add milk and {n} eggs to the list", "We need {thing}", "Put {thing} on my shopping list"],
    "calendar": ["Book {person} for {day}", "Move the meeting with {person} to {day}", "What do I have on {day}?"],
    "message": ["Text {person} that I am late", "Reply yes to {person}", "Tell {person} the meeting is on {day}"],
    "spelling": ["Fix the spelling: {message}", "Correct the typos in this. {text}", "Check the grammar of one sentence: {text}"],
    "polite": ["Say this more politely: {opinion}", "Make it friendlier: {message}", "Rewrite in one formal sentence. {opinion}"],
    "continue": ["Complete the sentence: {topic} is", "Finish this line: Dear {person}, thank you for", "Autocomplete: We are sorry that {thing}"],
    "translate": ["Translate into German: {text}", "How do you say \"where is {place}\" in French?", "In Spanish, please: {opinion}"],
    "yesno": ["Yes or no: does the text mention {place}? {text}", "True or false? {text}", "Is the writer satisfied? {opinion}"],
    "units": ["How many grams are {n} ounces?", "{n} miles in kilometres", "Convert {n} F to C"],
    "same": ["Do these two mean the same? A: {text} B: {text}", "Which is shorter, A or B? A: {text} B: {opinion}", "Match the question to the answer: {message}"],
    "command": ["Which command is meant, open, close or lock? \"Shut the door behind {person}\"", "Map to an intent: {message}", "Route: {message}"],
    "emoji": ["One emoji for: {opinion}", "Pick a colour for the mood of: {text}", "Is the tone formal or casual? {message}"],
}

COMPLEX = {
    "implement": ["Implement {code} in {language} with tests, and explain the complexity of every operation.",
                  "Write {code} in {language}. It must be safe with several threads and have no dependencies.", "I need a {language} module for {code}, with documentation and error handling."],
    "debug": ["My {language} program with {code} deadlocks after {n} requests, but only under load. Work out the likely causes and how to find which one it is.",
              "Why would {code} in {language} leak memory when a worker dies? Go through the possibilities step by step.", "Here is a stack trace from {code}. Explain what happens and propose a fix that keeps the API."],
    "refactor": ["Refactor this {language} code base from {tech} to {tech2} without downtime; describe each step and its risks.",
                 "How would you split {code} into testable parts? Show the interfaces in {language}.", "Rewrite {code} so that it is generic over the key type and prove that nothing else changes."],
    "sql": ["Write a query that finds for every customer the longest run of days with orders, ties included, and explain its plan.",
            "Design a schema for {thing} with history, permissions and soft deletion, and discuss the indexes.", "Optimise a report that joins {n} million rows with {tech}; consider partitioning, and argue for one way."],
    "prove": ["Prove that the sum of the first n odd numbers is a square, by induction and by a picture.", "Show that there are infinitely many primes of the form 4k + 3.",
              "Is the converse true? Prove it or give a counterexample, and generalise to {n} dimensions."],
    "word-problem": ["A train leaves {place} at {n} km/h and another one follows {m} minutes later at twice that speed. Where do they meet, and what changes if the first one stops for {n} minutes?",
                     "If {n} workers build a wall in {m} days, how many are needed when every third day is lost? Show your reasoning.", "Two tanks of {n} and {m} litres are filled at different rates; derive when they hold the same amount."],
    "probability": ["I draw {n} cards without replacement. Derive the probability of at least one pair, and check it with a simulation argument.",
                    "Explain the Monty Hall problem with {n} doors and derive the general formula.", "How large a sample do I need to tell {n} % from {m} % with a power of 0.8? Explain the assumptions."],
    "design": ["Design the architecture of a chat service for {n} million users with {tech}; discuss consistency, failure modes and costs.",
               "Compare {tech} with {tech2} for an online shop that must survive the loss of a data centre.", "Draw up a migration from {tech} to {tech2}, with milestones, risks and a way back."],
    "tradeoff": ["What are the trade-offs between {tech} and {tech2} in a team of {n}? Recommend one and defend it against the strongest objection.",
                 "When does {tech} stop paying off? Reason from first principles.", "Argue both sides of using {tech} here, then decide."],
    "plan": ["Plan a trip of two weeks through Portugal for a family with a toddler and a wheelchair, by train only, under 2,500 euros, with a plan B for rain.",
             "Plan the move of our office to {place}: tasks, owners, dependencies, and what can go wrong.", "Make a study plan for {n} weeks that takes me from nothing to reading papers about {topic}."],
    "budget": ["We earn 4,200 a month and owe {n},000 at two rates. Work out which debt to pay first and when we are free of it under three scenarios.",
               "Build a business plan for a shop that sells {topic}, with a forecast of three years and its assumptions.", "Should I rent or buy in {place}? Consider taxes, interest and the chance that I move in five years."],
    "essay": ["Write an essay of 1,500 words on {idea}, with a thesis, counter-arguments and sources to look up.",
              "Write a persuasive speech against {idea} for an audience that is in favour of it.", "Discuss how the idea of {idea} changed since 1900 and what drove the change."],
    "compare": ["Compare the causes of the French and the Russian revolution and evaluate which were decisive.", "Analyse the arguments for and against {idea}, including effects of the second order.",
                "Contrast three theories of justice and apply each of them to {idea}."],
    "literature": ["Interpret the role of the sea in \"To the Lighthouse\" and relate it to the form of the novel.", "How does the unreliable narrator shape the theme of guilt? Give evidence from at least two scenes.",
                   "Compare two translations of the same sonnet and explain what each one gives up."],
    "story": ["Write a short story of 2,000 words in which {person} finds a letter in {place}; tell it backwards.", "Write a dialogue between a beekeeper and a physicist about {topic} in which both change their minds.",
              "Invent a myth that explains {topic}, with three gods who disagree."],
    "legal": ["My landlord in {place} wants to keep the deposit because of {thing}. Which arguments do I have, which evidence matters, and what should my letter say?",
              "Review this clause about liability and explain in whose favour it is and how to change it.", "Which duties follow from the data protection rules if we move {thing} to another provider?"],
    "medical": ["I take two medicines and feel dizzy since {day}. Explain which interactions are possible, what to ask the doctor and what would be an emergency.",
                "Explain how statins work, for whom the benefit outweighs the risk, and how certain that is.", "Weigh surgery against physiotherapy for a torn meniscus at 55, with what the studies show."],
    "science": ["Explain why the sky is dark at night, and what that tells about the age of the universe, without formulas and then with them.",
                "How do {topic} find their way? Summarise the competing hypotheses and the experiments that could decide.", "Derive the escape velocity and discuss what the derivation neglects."],
    "experiment": ["Design an experiment that tests whether {topic} improve sleep; consider confounders, blinding and sample size.",
                   "Our test shows a gain of {n} % with p = 0.04. What could be wrong with it? Go through the threats one after the other.", "How would you measure the effect of {idea} without a control group?"],
    "data": ["Here are monthly sales for {n} shops. Find the trend, explain the outliers and suggest what to do about the three weakest.",
             "Build a model that forecasts demand for {thing} and explain which features you would use and why.", "Analyse the survey about {idea}: segments, contradictions, and what we still do not know."],
    "strategy": ["A competitor halves its price for {thing}. Develop three responses, simulate how it reacts to each, and recommend one.",
                 "How should a newspaper in {place} earn money in ten years? Think through scenarios.", "Write a negotiation strategy for a contract about {thing}, with our walk-away point and theirs."],
    "interview": ["Prepare me for an interview as a {language} engineer: ten hard questions about {code} with model answers and follow-ups.",
                  "Play the sceptical investor and question my plan for {thing} until it holds.", "Give me feedback on this application letter and rewrite it for a research position about {topic}."],
    "teach": ["Teach me {tech} as if I knew only spreadsheets: build it up step by step, with exercises and solutions.", "Explain recursion to a child, a student and an expert, and say what each version leaves out.",
              "Write a lesson of 45 minutes about {topic} with aims, activities and a test."],
    "puzzle": ["Three people each say that exactly one of the others lies. Work out who tells the truth, and how many solutions there are.", "Solve this puzzle and show that the solution is unique: five houses, five colours, five pets.",
               "Find the flaw in this argument about {idea}, and repair it if that is possible."],
    "ethics": ["Is it right to break a promise to {person} in order to help a stranger? Argue as a utilitarian and as a Kantian, and then judge.",
               "Discuss who is responsible when a self-driving car in {place} harms somebody.", "Write a code of conduct for research on {topic} and justify every rule."],
    "review": ["Review this design of {code} for security: threats, attack paths, mitigations and what remains.", "Read both papers about {topic} and explain why they contradict each other.",
               "Go through my argument for {idea} and name every unstated assumption."],
    "agent": ["Find the cheapest way to get {n} people to {place} on {day}, check the hotels, compare with the train and book what fits the budget.",
              "Search my mails about {thing}, find out what was promised, and draft a reply that settles it.", "Collect the figures of the last {n} quarters, make a table and a chart and write the comment of the board."],
    "long-doc": ["Write a specification for {code}: requirements, interfaces, edge cases, tests, open questions.", "Draft a report of ten pages on {topic} in {place} for the council, with an outline first.",
                 "Turn these notes into a manual of {n} pages for {thing}, with a glossary."],
}


def main():
    r = random.Random(20261130)
    for label, groups in (("narrow", NARROW), ("complex", COMPLEX)):
        for group, templates in groups.items():
            seen = set()
            for i in range(EACH * 20):
                text = fill(templates[i % len(templates)], r)
                if len(seen) == EACH:
                    break
                if text in seen:
                    continue
                seen.add(text)
                print(json.dumps({"text": text, "class": label, "group": group, "source": "generated"}, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
