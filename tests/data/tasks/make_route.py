"""Writes route.jsonl: what people say to an assistant in a flat, the intent behind it, and things that it can do nothing about.

    python3 make_route.py > route.jsonl
"""
import json

SAID = {
    "weather": """
Will it rain this afternoon?
Do I need an umbrella tomorrow?
How cold is it outside right now?
What's the forecast for the weekend in Vienna?
Is it going to snow tonight?
How hot will it get on Saturday?
Tell me the temperature in Madrid.
Are there any storm warnings for the coast?
Is the sun going to come out later?
How windy is it today?
What will the weather be like for our picnic on Sunday?
Is it still raining?
Will there be frost during the night?
How humid is it in Singapore today?
""",
    "timer": """
Set a timer for ten minutes.
Remind me in half an hour to take the cake out.
Wake me up at six thirty.
Start a countdown of 90 seconds.
How much time is left on the egg timer?
Cancel the alarm for tomorrow morning.
Set an alarm for 7 a.m. on weekdays.
Let me know when fifteen minutes are over.
Stop the timer, please.
Give me three minutes for the tea.
Pause the countdown.
I need an alarm at quarter to five.
Add five more minutes to the timer.
Snooze for ten minutes.
""",
    "music": """
Play some jazz.
Put on the latest album by Adele.
Skip this song.
Turn the music down a little.
I want to hear something relaxing.
Who sings this?
Play my running playlist.
Repeat the last track.
Stop the music.
Shuffle songs from the eighties.
Play the Beatles in the kitchen.
Louder, please, I love this song.
Find me a good rock station.
Put this tune on repeat.
""",
    "lights": """
Turn off the lights in the bedroom.
It's too dark in here.
Dim the lamp in the living room to 30 percent.
Switch on the porch light.
Make the kitchen brighter.
All lights off, I'm going to bed.
Set the bulbs to a warm white.
Turn the hallway lamp on at sunset.
Could you make the reading light blue?
Did I leave the light on in the garage?
Lights on!
The lamp on the desk is too bright, turn it down.
Switch off every lamp downstairs.
Make the room as bright as possible.
""",
    "shopping": """
Add milk to the shopping list.
We are out of coffee.
Put two bottles of olive oil on my list.
What do I still have to buy?
Remove bananas from the list.
Write down that we need dishwasher tablets.
Order more printer paper.
Is there anything on the grocery list?
I need eggs, flour and sugar from the shop.
Clear the shopping list.
Remember to buy a birthday present for Leo.
Add a loaf of bread, please.
Take the apples off my list, I already bought them.
We're running low on toilet paper.
""",
    "none": """
What is the capital of Mongolia?
I think I am falling in love.
Translate "good evening" into Japanese.
Who won the world cup in 1998?
My brother is a carpenter.
How many grams are in an ounce?
Tell me a joke about penguins.
Why do cats purr?
I have a headache.
Book me a flight to Lisbon.
Can you help me with my tax return?
The meeting went better than I expected.
What's the meaning of the word "serendipity"?
Call my sister.
How old is the universe?
Do you believe in ghosts?
I cannot find my keys.
Write an e-mail to my landlord.
What is 17 times 23?
Is this restaurant open on Mondays?
Thanks, that is all.
Send this photo to grandma.
How do I get to the airport?
Tell me about the history of Rome.
My phone screen is broken.
Good morning!
Is my passport still valid?
What did the stock market do yesterday?
I would like to learn the violin one day.
Read me a bedtime story.
""",
}

sets = {label: text.strip().split("\n") for label, text in SAID.items()}
for i in range(max(map(len, sets.values()))):
    for label, lines in sets.items():
        if i < len(lines):
            print(json.dumps({"input": lines[i], "label": label}, ensure_ascii=False))
