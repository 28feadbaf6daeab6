"""The small words around a topic: what people put before and after what they look for."""

from __future__ import annotations

from typing import Final


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


#: Before the topic, common first.
PREFIXES: Final = _phrases(
    "free, the, how to, pictures of, cheap, what is, new, best, used, how do i, find, history of, buy, "
    "online, list of, where to buy, my, how much is, discount, photos of, where can i find, types of, why "
    "do, make your own, who invented, local, facts about, learn about, what causes, map of, help with, "
    "small, antique, how to make, custom, printable, info on, when was, big, black, red, white, blue, "
    "green, old, wholesale, home made, american, rules for, names of, top ten, easy, women's, men's, kids"
)

#: After any topic, common first.
SUFFIXES: Final = _phrases(
    "pictures, 2006, for sale, online, information, reviews, store, history, for kids, jobs, prices, "
    "club, news, company, free, supplies, magazine, association, show, videos, books, center, products, "
    "ideas, home page, tips, training, classes, forum, on line, cost, gifts, codes, department, manual, "
    "safety, images, blog, calendar, awards, contest, directory, statistics, facts, map, hours, phone "
    "number, 2005, kit, chart, program, museum, sale, comparison, problems, catalog, outlet, test, "
    "definition, meaning, essay, project, research, care"
)

#: After a topic of one of the sixteen areas only, common first.
FITTING: Final = {
    "Adult": _phrases("pics, chat, stories, videos, free pics, dating, gallery"),
    "Arts": _phrases(
        "lyrics, movie, songs, tickets, soundtrack, cast, tour dates, guitar tabs, prints, festival"
    ),
    "Business": _phrases(
        "jobs, stock price, salary, franchise, loans, insurance, consultants, rates, tax forms"
    ),
    "Computers": _phrases(
        "free download, software, drivers, tutorial, update, support, wallpaper, spyware removal"
    ),
    "Games": _phrases("cheats, walkthrough, rules, game online, free online game, high scores, cheat codes"),
    "Health": _phrases(
        "symptoms, treatment, side effects, diet, disease, causes, doctors, medication, surgery, cure"
    ),
    "Home": _phrases(
        "recipes, plans, repair, decorating ideas, installation, patterns, how to clean, removal"
    ),
    "Kids": _phrases("coloring pages, crafts, printable, worksheets, party ideas, for toddlers, costumes"),
    "News": _phrases("today, latest news, headlines, live, report, obituaries, weekly"),
    "Recreation": _phrases(
        "parts, rentals, trips, dealers, accessories, vacations, breeders, trails, campground"
    ),
    "Reference": _phrases("dictionary, degree, college, test answers, lesson plans, biography, encyclopedia"),
    "Regional": _phrases(
        "hotels, real estate, weather, map, restaurants, county, newspaper, airport, directions"
    ),
    "Science": _phrases("theory, experiments, diagram, formula, species, life cycle, equation, science fair"),
    "Shopping": _phrases(
        "coupons, discount, wholesale, store, prices, auction, free shipping, clearance, catalog"
    ),
    "Society": _phrases("laws, history, church, records, genealogy, support group, ceremony, rights, quotes"),
    "Sports": _phrases("scores, schedule, rules, team, tickets, league, jerseys, stats, camp, championship"),
}

#: After the name of a site.
SITE_SUFFIXES: Final = _phrases("login, maps, customer service, home page, search, mail, music, sign up")

#: Queries of a slipped finger, and fragments of an address.
FRAGMENTS: Final = _phrases("m, g, y, http, www, com, www., .com, a, c, w, s, h, -, internet")

#: How much people ask about each of the sixteen level-1 topics (rough shares, ours).
TOPIC_SHARES: Final = {
    "Adult": 4,
    "Arts": 15,
    "Business": 7,
    "Computers": 8,
    "Games": 5,
    "Health": 8,
    "Home": 8,
    "Kids": 3,
    "News": 3,
    "Recreation": 9,
    "Reference": 5,
    "Regional": 5,
    "Science": 4,
    "Shopping": 9,
    "Society": 9,
    "Sports": 6,
}
