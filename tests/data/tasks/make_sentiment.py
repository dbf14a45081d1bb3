"""Writes sentiment.jsonl: opinions about all kinds of things, written for this project.

    python3 make_sentiment.py > sentiment.jsonl
"""
import json

REVIEWS = {
    "positive": """
What a delightful film, I laughed from start to finish.
The soup was hot, rich and full of flavour. We will be back.
Best headphones I have ever owned, the sound is crystal clear.
The staff went out of their way to help us with the luggage.
I could not put this book down until three in the morning.
Arrived a day early and works perfectly.
The children loved the petting zoo and so did we.
A brilliant performance by the whole orchestra.
Easy to assemble, sturdy, and it looks fantastic in our kitchen.
Our guide knew every corner of the city and told wonderful stories.
For this price you will not find a better vacuum cleaner.
The room had a breathtaking view over the lake.
My skin has never felt so soft, I am thrilled with this cream.
Finally a phone whose battery lasts two full days!
The dentist was gentle and explained everything. I felt no pain at all.
Crispy crust, fresh basil, perfect pizza.
The course was well structured and I learned a great deal.
I was sceptical at first, but this mattress has cured my back pain.
Moving, clever and beautifully shot: the best series of the year.
They repaired my bike within an hour and charged next to nothing.
The coat is warm, light and fits like a glove.
Friendly neighbours, quiet street, lovely garden. We adore this flat.
The update made everything twice as fast. Well done.
The best coffee in town and such a cosy place to sit.
Her new album is a masterpiece.
Customer service answered within minutes and solved the problem.
The hike was stunning, and the signs were easy to follow.
I recommend this plumber to everyone, clean and honest work.
The puzzle kept us happily busy for a whole rainy weekend.
Comfortable seats, on time, and a smile from the conductor.
This knife cuts through everything like butter.
The museum exceeded all my expectations.
My plants have doubled in size since I began using this soil.
The recipe turned out great, my guests asked for more.
I am so glad that I chose this school for my daughter.
Such a charming little bookshop, I could spend hours there.
""",
    "negative": """
What a waste of two hours, the plot made no sense at all.
The soup was cold and the waiter rude. Never again.
The headphones broke after a week and the sound was tinny anyway.
Nobody at the reception cared that our room had not been cleaned.
I gave up on this book after fifty pages, so boring.
It arrived late, scratched, and without the cable.
The zoo was a sad place, the animals looked ill.
The band was out of tune and the singer forgot the words.
Half of the screws were missing and the boards did not fit.
Our guide was bored, hard to understand, and left early.
Overpriced junk that cannot even pick up crumbs.
The window faced a brick wall and the pipes roared all night.
This cream gave me a terrible rash.
The battery is empty by noon, I regret buying this phone.
The dentist hurt me and did not even apologise.
Soggy crust, canned mushrooms, awful pizza.
The course was chaotic and a complete rip-off.
After one month on this mattress my back hurts more than ever.
A dull, predictable series with wooden acting.
They kept my bike for three weeks and it still squeaks.
The coat lost its buttons on the first day and is not even warm.
Noisy neighbours, mould on the walls: we cannot wait to move out.
Since the update the app crashes all the time. Very annoying.
The coffee tasted burnt and the tables were sticky.
Her new album is a huge disappointment.
I waited forty minutes on the phone and then they hung up on me.
The trail was badly marked and we got lost twice.
This plumber left a mess and the tap drips worse than before.
Three pieces of the puzzle were missing. How frustrating.
The train was dirty, overcrowded and an hour late.
This knife could not cut warm butter.
The museum was a let-down, most rooms were closed.
Every one of my plants died in this soil.
The recipe was a disaster, I had to throw everything away.
I am shocked by how badly this school treats its pupils.
An ugly shop with grumpy staff and dusty shelves.
""",
    "neutral": """
The film runs for 112 minutes and has subtitles in French.
The restaurant opens at six and seats about forty guests.
These headphones come in black and in white.
The hotel has three floors and a car park behind the building.
The book was first published in 1987.
The parcel contains a charger, a cable and a manual.
The zoo is closed on Mondays from November to March.
The concert starts at eight and there will be one interval.
The shelf is 180 centimetres high and made of pine.
The tour begins at the town hall and ends by the river.
The vacuum cleaner needs bags of type C.
Breakfast is served between seven and ten.
The cream should be applied twice a day.
The phone has a screen of 6.1 inches.
My next appointment at the dentist is in April.
The menu lists twelve kinds of pizza.
The course takes place on Tuesdays in room 204.
The mattress is available in four sizes.
The second season has eight episodes.
The bike shop is next to the post office.
The coat is sold in sizes 36 to 46.
The flat has two rooms and is on the third floor.
Version 3.2 was released on Wednesday.
The café changed its opening hours in June.
The album has eleven songs.
Customer service can be reached by telephone and by e-mail.
The path goes around the lake and is five kilometres long.
The plumber will come on Thursday between nine and noon.
The puzzle has one thousand pieces.
The train stops in Linz, Wels and Salzburg.
The knife set consists of five pieces.
The museum was founded by a merchant in 1902.
The soil should be kept moist.
The recipe calls for two eggs and a cup of flour.
The school year begins in September.
The bookshop moved to Station Road last year.
""",
}

for i in range(36):
    for label, text in REVIEWS.items():
        print(json.dumps({"input": text.strip().split("\n")[i], "label": label}, ensure_ascii=False))
