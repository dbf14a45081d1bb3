"""Writes redact.jsonl: texts with personal data and where it is (byte offsets), written for this project.

    python3 make_redact.py > redact.jsonl

Each text is written with its data marked as {TYPE|what it says}. All people, numbers and addresses are invented; IBANs and
cards are the examples that registries and payment services publish, or have a checksum computed here.
"""
import json
import re

TEXTS = r"""
Hi, this is {NAME|Laura Hansen}. You can reach me at {EMAIL|laura.hansen@example.com} or on {PHONE|+45 32 12 34 56}.
Please transfer the deposit to {IBAN|DE89 3704 0044 0532 0130 00} before {DATE|15 March 2024}.
My card {CARD|4111 1111 1111 1111} was declined twice yesterday.
The server at {IP|192.168.17.4} has been unreachable since {DATE|2023-11-02}.
{NAME|Mr Okafor} moved to {ADDRESS|12 Mill Lane, Bristol} last summer.
Call {PHONE|(555) 123-4567} and ask for {NAME|Denise Calloway}.
The appointment with {NAME|Dr Petrov} is on {DATE|04/09/2024} at half past nine.
Write to {EMAIL|support+orders@shop.example.org} if the parcel does not arrive.
{NAME|Ana Sousa} was born on {DATE|7 July 1991} and lives at {ADDRESS|Rua das Flores 22, Porto}.
Order 48213 weighs 3.5 kg and costs 129.90 euros.
We saw logins from {IP|203.0.113.77} and from {IP|2001:db8::8a2e:370:7334} within one minute.
Our office is open from 9 to 17 on weekdays.
Dear {NAME|Mrs Whitfield}, your invoice of {DATE|01.02.2024} is still open.
Fax us at {PHONE|+49 30 901820} or mail {EMAIL|info@rathaus.example.de}.
The IBAN {IBAN|GB29NWBK60161331926819} belongs to {NAME|Thomas Reed}.
Charge it to {CARD|5500-0000-0000-0004}, expiry 09/27.
{NAME|Yuki Tanaka} and {NAME|Paul Brandt} share the flat at {ADDRESS|48 Station Road, Leeds}.
Version 2.10.4 fixes the crash that was reported in build 7781.
The contract was signed on {DATE|March 3, 2022} and ends on {DATE|March 2, 2025}.
Text me on {PHONE|07700 900123} when you are outside.
He paid with {CARD|378282246310005} and wants the receipt sent to {EMAIL|j.miller@mail.example.net}.
The gateway {IP|10.0.0.1} hands out addresses up to 10.0.0.254.5 by mistake.
Her new number is {PHONE|+1 212 555 0187}, the old one no longer works.
Das Treffen ist am {DATE|3. Oktober 2024}, Rückfragen an {EMAIL|büro@beispiel.example}.
The chapter on pages 12-14 explains ratios such as 3:2 and 16:9.
{NAME|Fatima El Amrani} asked for a refund to {IBAN|FR14 2004 1010 0505 0001 3M02 606}.
Deliver it to {ADDRESS|Hauptstraße 5, 80331 München}, second floor.
The meeting on {DATE|2024-05-21} was moved to {DATE|2024-05-28}.
You can phone {NAME|Miguel} on {PHONE|+34 612 345 678} after six.
The recipe needs 250 g of flour, 3 eggs and 125 ml of milk.
Rechnung vom {DATE|12.06.2023}, zahlbar auf {IBAN|AT61 1904 3002 3457 3201}.
My login {EMAIL|kate_w@uni.example.edu} was used from {IP|198.51.100.23} at 03:12:45.
{NAME|Priya Raman} lives at {ADDRESS|221 Park Avenue, Springfield}.
The amount of 4111111111111112 is not a card number, the checksum is wrong.
Contact {NAME|Sven Lindqvist}, phone {PHONE|08-123 456 78}, about the keys.
The concert begins at 20:00 and tickets cost between 25 and 60 euros.
Please update my birthday to {DATE|29 February 1988}.
The 30th of February does not exist, and neither does 31/04/2023.
Ship the spare part to {NAME|Olga Novak}, {ADDRESS|7 Harbour View, Cork}.
The backup card is {CARD|6011 1111 1111 1117}.
I met {NAME|George} at the station, his mail is {EMAIL|george@letters.example}.
Ping {IP|8.8.8.8} first, then {IP|fe80::1}.
The refund goes to {IBAN|NL91ABNA0417164300}, account holder {NAME|Sanne de Vries}.
Read chapter 7 until Friday and answer questions 1 to 12.
Our hotline {PHONE|0800 123 4567} is free of charge.
The patient, {NAME|Helen Abara}, was admitted on {DATE|Dec 24, 2021}.
Mail {EMAIL|hr@firm.example.com}, {EMAIL|it@firm.example.com} and {EMAIL|press@firm.example.com}.
Le rendez-vous du {DATE|14 juillet 2023} est annulé, appelez le {PHONE|+33 1 23 45 67 89}.
{NAME|Ahmed Yilmaz} drives the bus, {NAME|Rosa Blanco} sells the tickets.
Port 8080 on {IP|172.16.254.1} is closed.
The parcel for {ADDRESS|3 Cherry Close, Exeter EX1 2AB} came back.
Cancel the card {CARD|3530111333300000} at once, it was stolen on {DATE|9 May 2024}.
The score was 3-2 after extra time, with 61,204 people in the stadium.
Ask {NAME|Chiara Bianchi} for the key, {PHONE|+39 06 698 12345}.
Transfer it to {IBAN|CH93 0076 2011 6238 5295 7} with the reference 2024-117.
Mum's birthday is on {DATE|12 August}, mine on {DATE|August 30}.
The room number is 1204 and the code of the door is 5591.
{NAME|Liam O'Connor} wrote from {EMAIL|liam.oconnor@post.example.ie} on {DATE|1st of June 2023}.
Our new address: {ADDRESS|Avenida Central 101, Lisboa}.
Connect to {IP|2001:db8:0:0:0:0:2:1} over SSH.
The flight leaves at 6.45 from gate B22, seat 14C.
Send the documents to {NAME|Jonas Weber}, {EMAIL|j.weber@kanzlei.example.de}, until {DATE|30/11/2023}.
The witness {NAME|Amelia Stone} gave her number as {PHONE|202-555-0143}.
My old card ending in 4242 has expired.
IBAN: {IBAN|ES91 2100 0418 4502 0005 1332}; BIC: CAIXESBBXXX.
The lamp uses 9 watts and lasts 15,000 hours.
On {DATE|2022/08/17} the router changed from {IP|100.64.3.9} to {IP|100.64.3.10}.
Has {NAME|Beatrix Kiss} called back? She is at {PHONE|+36 1 234 5678}.
Visit us at {ADDRESS|90 Queen Street, Edinburgh} any day before noon.
It is 12.5 percent more than in 1999.
Pay by card ({CARD|4012888888881881}) or by transfer ({IBAN|BE68 5390 0754 7034}).
{NAME|Nils} left his jacket in the car.
The file is called report-2023-final-v2.pdf and has 88 pages.
Dial {PHONE|+44 20 7946 0958} and press 2.
The lease at {ADDRESS|16 Baker's Row, Norwich} began on {DATE|September 1, 2020}.
Write {EMAIL|o'neil@club.example} about the membership of {NAME|Deirdre O'Neil}.
Ticket 2023118845 has been closed.
You owe {NAME|Stefan Ionescu} 40 lei since {DATE|19.12.2023}.
Use DNS {IP|1.1.1.1} or {IP|2606:4700:4700::1111}.
Sales rose from 1.2.3 to 1.2.4, if you believe the slides.
The nurse noted: {NAME|Grace Mbeki}, born {DATE|1979-10-05}, phone {PHONE|+27 21 123 4567}.
A litre of paint covers about 10 square metres.
Deposit via {IBAN|PL61 1090 1014 0000 0712 1981 2874}, please.
The pianist {NAME|Elena Markova} plays on {DATE|21 November 2024}.
Reply to {EMAIL|no-reply@news.example.co.uk} is not possible.
We stayed at {ADDRESS|Via Roma 15, Torino} for a week.
Battery at 54 %, 3 of 8 cores busy, load 0.71.
Old: {PHONE|030 1234567}; new: {PHONE|030 7654321}.
{NAME|Kwame Asante} paid {CARD|5105 1051 0510 5100} for the tickets.
Halte den {DATE|24. Dezember} frei, {NAME|Oma Gerda} kommt.
The ISBN 978-3-16-148410-0 is printed on the back.
The customer at {IP|192.0.2.146} asked for {NAME|Victor Hale}.
Reach the landlord, {NAME|Pierre Dumont}, at {ADDRESS|8 rue Victor Hugo, Lyon} or {PHONE|+33 4 72 00 00 00}.
Between 2010 and 2015 the town grew by 4,000 people.
Mein Konto ist {IBAN|DE75 5121 0800 1245 1261 99}, ausgestellt auf {NAME|Karin Vogel}.
Lunch with {NAME|Isabel} on {DATE|6 June}?
Forward it from {EMAIL|a.b-c_d@sub.domain.example.com} to {EMAIL|x@y.example}.
She called from {PHONE|+61 2 9876 5432} about the flat in {ADDRESS|5 Ocean Drive, Bondi}.
The train 1121 stops at platforms 3 and 4.
Serial 00-14-22-01-23-45 is a hardware address, {IP|198.18.0.99} is not.
On {DATE|31 December 2023} {NAME|Noor Haddad} moved out of {ADDRESS|27 Elm Court, Dundee}.
The judge adjourned until {DATE|5 Feb 2024}; counsel is {NAME|Marcus Lindgren}.
I weigh 72 kg and run 10 km in 52:31.
"""

MARK = re.compile(r"\{([A-Z]+)\|([^}]*)\}")


def item(line):
    text, spans, at = "", [], 0
    for mark in MARK.finditer(line):
        text += line[at:mark.start()]
        start = len(text.encode())
        text += mark.group(2)
        spans.append({"start": start, "end": len(text.encode()), "type": mark.group(1)})
        at = mark.end()
    return {"input": text + line[at:], "spans": spans}


for line in TEXTS.strip().split("\n"):
    print(json.dumps(item(line), ensure_ascii=False))
