"""Writes classify.jsonl: support tickets of a shop for software and devices, written for this project, and their topics.

    python3 make_classify.py > classify.jsonl
"""
import json

TICKETS = {
    "billing": """
I was charged twice for my March subscription. Please refund one of the payments.
The invoice you sent shows 49 euros but my plan costs 39. Can you correct it?
My credit card expired last week. How do I pay with a new one?
Why is there a fee of $3.50 on my statement that I never agreed to?
Could you send me a receipt with our VAT number for last year's payments?
I cancelled before the trial ended and you still took the money.
The discount code SPRING20 was accepted but the total did not go down.
We need to switch from monthly to yearly payment. What will the next invoice be?
It says "payment declined" although there is enough money in my bank account.
I would like my money back for the annual plan, I only used it for two days.
Can I pay by bank transfer instead of PayPal?
The amount on the bill is in dollars, but I live in Sweden. Which exchange rate do you use?
Our accounting department never got the invoice for order 5531.
You renewed my subscription without asking. I want this payment reversed.
Is there a student price? I am paying the full rate at the moment.
Two of our five seats are unused, why are we still billed for them?
I got a reminder for an invoice that I paid on the 2nd.
The tax on the bill seems wrong, we are a non-profit and exempt.
Please split the costs over two invoices, one for each department.
My refund was promised within ten days, it has been three weeks now.
How much will it cost if we add three more users to our plan?
You have taken the wrong amount from my account this month.
""",
    "technical": """
The app crashes every time I open a PDF larger than 10 MB.
After the latest update the program does not start any more, only a white window appears.
Error 0x80070005 when installing the driver on Windows 11.
Sync has been stuck at 99 percent since yesterday evening.
The export to Excel produces an empty file.
My headset connects by Bluetooth but there is no sound.
Search results take more than a minute to load, it used to be instant.
The print button does nothing in Firefox, it works in Chrome.
I get a blue screen whenever I plug in the docking station.
Notifications do not arrive on my phone unless the app is open.
The API returns a 500 error for every request with an umlaut in the name.
Your website shows "page not found" when I click on Reports.
The camera picture is upside down in video calls.
The battery of the tracker drains within two hours since firmware 2.4.
I cannot upload photos from my iPhone, the progress bar stays at zero.
The keyboard shortcut for undo stopped working in the editor.
Import fails with the message "unexpected token in line 1".
The router loses its connection every few minutes and the red light blinks.
Dark mode makes the text in the tables unreadable.
The calendar shows all appointments one hour too late after the clock change.
Memory use goes up to 12 GB when I leave the program open overnight.
The installer says that it is not compatible with my version of macOS.
""",
    "account": """
I forgot my password and the reset mail never arrives.
Please change the e-mail address of my profile, I no longer work at that company.
My account has been locked after too many sign-in attempts.
How can I delete my profile and all personal data?
I lost my phone and cannot get the two-factor code to log in.
Can two people share one login, or do we need separate users?
Please merge my two accounts, I registered twice by mistake.
I want to change my user name from jsmith88 to Jane Smith.
Someone from another country has signed in as me. What should I do?
The link to confirm my registration has expired.
How do I give a colleague administrator rights?
I cannot log in with Google any more, it asks me to create a new profile.
Please remove our former employee from the list of users.
Where can I see on which devices I am signed in?
My last name changed when I married. How do I update it in my profile?
It says that my username is already taken, but it is mine.
I would like to switch off two-step verification for my login.
The security question is not one that I set up. I cannot get into my account.
Can I transfer the ownership of our team workspace to another person?
I keep getting signed out and have to enter my password each time.
Please deactivate my account while I am on leave.
The password rules are unclear, it rejects everything I type.
""",
    "shipping": """
My parcel was supposed to arrive on Monday and it is Thursday now.
The tracking page has said "label created" for six days.
The box was open and the charger was missing when it was delivered.
Can you send the order to my office instead of my home address?
I received someone else's package, the name on it is Keller.
Do you deliver to Norway, and how long does that take?
The courier says that nobody was at home, but I was there all day.
I ordered two keyboards and only one came.
When will the printer be back in stock and dispatched?
The parcel was left in the rain and everything in it is wet.
Is express delivery possible? I need it before Friday.
The order is marked as delivered but there is nothing in my mailbox.
How do I send the item back? There was no return label in the package.
I gave the wrong house number. Can the delivery still be redirected?
Which carrier do you use for orders to Portugal?
My order has been held at customs for two weeks.
Please hold my shipment until I am back from holiday on the 20th.
The driver dropped the monitor, I watched it from the window.
You sent the red one, I ordered the blue one.
Can I pick up the goods at your warehouse myself?
The parcel shop has sent my package back without telling me.
Could all three orders be put together into one delivery?
""",
    "feedback": """
I just wanted to say that your support team is wonderful. Thank you, Maria!
It would be great if the app had a widget for the home screen.
The new design is lovely, much clearer than the old one.
Please consider adding a Finnish translation.
My suggestion: let users sort the list by date.
I really dislike the new icons, the old ones were easier to tell apart.
Five stars from me, the best note-taking app I have tried.
Have you thought about offering a version for Linux?
Great job with the latest release, keep it up!
An idea for the next version: colour labels for folders.
The tutorial videos are too long, shorter ones would be nicer.
I love how simple everything is. My grandmother uses it as well.
You should add a button to duplicate a task.
I miss the weekly summary, please bring that feature back.
Your newsletter comes too often for my taste, once a month would be enough.
Compliments to your designers, the watch face looks beautiful.
It would help beginners if there were more examples in the manual.
A dark theme would be a nice addition some day.
Thanks for listening to your users, the new filter is exactly what I had hoped for.
I think the voice of the assistant sounds a bit too cheerful.
Just my opinion: the logo on the back of the tablet is too large.
We have used your product for ten years and are very happy with it.
""",
}

for i in range(22):
    for label, text in TICKETS.items():
        print(json.dumps({"input": text.strip().split("\n")[i], "label": label}, ensure_ascii=False))
