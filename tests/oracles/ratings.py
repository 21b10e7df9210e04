"""Ratings: strengths, one vote at a time, and those that follow time: typed naively."""

import math

import numpy as np
from scipy.optimize import minimize

# ---------------------------------------------------------------- ratings that follow time


def elo_ratings(games, k=32.0, initial=1500.0, scale=400.0, advantage=0.0):
    """Ratings after games (left, right, outcome), and the left's share foretold before each; k None: FIDE."""
    rating, best, count, shares = {}, {}, {}, []
    for left, right, outcome in games:
        a, b = (rating.get(player, initial) for player in (left, right))
        share = 1 / (1 + 10 ** ((b - a - advantage) / scale))
        shares.append(share)
        for player, old, points, expected in (
            (left, a, (1 - outcome) / 2, share),
            (right, b, (1 + outcome) / 2, 1 - share),
        ):
            games_so_far, highest = count.get(player, 0), best.get(player, initial)
            fide = 10 if highest >= 2400 else 30 if games_so_far < 30 else 15
            rating[player] = old + (fide if k is None else k) * (points - expected)
            count[player], best[player] = games_so_far + 1, max(highest, rating[player])
    return rating, shares


def glicko_ratings(periods, initial=1500.0, deviation=350.0, c=15.0, floor=0.0):
    """Ratings and deviations after periods {number: games}, by Glickman's formulas; numbers count time."""
    q, rating, spread, last = math.log(10) / 400, {}, {}, {}
    for number in sorted(periods):
        games = periods[number]
        players = {player for left, right, _ in games for player in (left, right)}
        before = {}
        for player in players:
            wide = spread.get(player, deviation)
            elapsed = number - last.get(player, number)
            wide = min(math.hypot(wide, c * math.sqrt(elapsed)), deviation)
            before[player] = (rating.get(player, initial), wide)
        for player in players:
            r, rd = before[player]
            inverse_d2, total = 0.0, 0.0
            for left, right, outcome in games:
                for side, other, sign in ((left, right, -1), (right, left, 1)):
                    points = (1 + sign * outcome) / 2
                    if side == player:
                        r_j, rd_j = before[other]
                        g = 1 / math.sqrt(1 + 3 * q**2 * rd_j**2 / math.pi**2)
                        e = 1 / (1 + 10 ** (-g * (r - r_j) / 400))
                        inverse_d2 += q**2 * g**2 * e * (1 - e)
                        total += g * (points - e)
            rating[player] = r + q / (1 / rd**2 + inverse_d2) * total
            spread[player] = max(math.sqrt(1 / (1 / rd**2 + inverse_d2)), floor)
            last[player] = number
    return rating, spread


def glicko_by_game(games, **options):
    """Every game a period of its own for its two players."""
    initial, deviation, c = options["initial"], options["deviation"], options["c"]
    rating, spread, players = {}, {}, set()
    for left, right, outcome in games:
        q, before = math.log(10) / 400, {}
        for player in (left, right):
            wide = spread.get(player, deviation)
            wide = min(math.hypot(wide, c), deviation) if player in players else wide
            before[player] = (rating.get(player, initial), wide)
        for side, other, points in ((left, right, (1 - outcome) / 2), (right, left, (1 + outcome) / 2)):
            (r, rd), (r_j, rd_j) = before[side], before[other]
            g = 1 / math.sqrt(1 + 3 * q**2 * rd_j**2 / math.pi**2)
            e = 1 / (1 + 10 ** (-g * (r - r_j) / 400))
            variance = 1 / (1 / rd**2 + q**2 * g**2 * e * (1 - e))
            rating[side], spread[side] = r + q * variance * g * (points - e), math.sqrt(variance)
        players |= {left, right}
    return rating, spread


def davidson_likelihood(nu, shares, outcomes):
    """Log-likelihood of outcomes, whose probabilities are in proportion to s, nu sqrt(s (1 - s)), 1 - s."""
    total = 0.0
    for s, outcome in zip(shares, outcomes, strict=True):
        tie = nu * math.sqrt(s * (1 - s))
        total += math.log({-1: s, 0: tie, 1: 1 - s}[outcome] / (1 + tie))
    return total


def player_statistics(games, initial=1200.0, elite=2400.0):
    """The 16 statistics of both sides before each game (left, right, outcome, time).

    For each game everything is computed anew from the list of games of earlier times.
    """
    rows = []
    for left, right, _, now in games:
        earlier = sorted((game for game in games if game[3] < now), key=lambda game: game[3])
        bare = [game[:3] for game in earlier]
        options = {"initial": initial, "deviation": 350.0, "c": 15.0}
        elo, glicko = elo_ratings(bare, k=None, initial=initial)[0], glicko_by_game(bare, **options)[0]
        log = []  # (player, opponent, points, opponent's rating less own, time)
        highest = {}
        for number, (a, b, outcome, when) in enumerate(earlier):
            ratings = elo_ratings(bare[:number], k=None, initial=initial)[0]
            gap = ratings.get(b, initial) - ratings.get(a, initial)
            log += [(a, b, (1 - outcome) / 2, gap, when), (b, a, (1 + outcome) / 2, -gap, when)]
            after = elo_ratings(bare[: number + 1], k=None, initial=initial)[0]
            for player in (a, b):
                highest[player] = max(highest.get(player, initial), after[player])
        sides = []
        for side, other, first in ((left, right, 1.0), (right, left, 0.0)):
            mine = [entry for entry in log if entry[0] == side]
            points = [entry[2] for entry in mine]
            higher, lower = [e[2] for e in mine if e[3] > 0], [e[2] for e in mine if e[3] < 0]
            met = [entry[2] for entry in mine if entry[1] == other]
            upsets, slips = higher.count(1.0), lower.count(0.0)
            sides.append(
                [
                    elo.get(side, initial),
                    glicko.get(side, initial),
                    first,
                    len(mine),
                    points.count(1.0),
                    points.count(0.5),
                    points.count(0.0),
                    (points.count(1.0) + points.count(0.5)) / len(mine) if mine else 0.5,
                    upsets,
                    upsets / len(higher) if higher else 0.5,
                    slips,
                    slips / len(lower) if lower else 0.5,
                    sum(entry[3] for entry in mine) / len(mine) if mine else 0.0,
                    now - mine[-1][4] if mine else 0.0,
                    float(highest.get(side, initial) >= elite),
                    sum(met) / len(met) if met else 0.5,
                ]
            )
        rows.append(sides)
    return rows


# ---------------------------------------------------------------- models of strengths, one vote at a time


def vote_probability(model, outcome, strength, other, tie):
    """Probability of -1 (the first wins), 0 or 1, from strengths; `tie` is nu or theta."""
    if model == "davidson":
        total = strength + other + tie * math.sqrt(strength * other)
        return {-1: strength, 0: tie * math.sqrt(strength * other), 1: other}[outcome] / total
    win, loss = strength / (strength + tie * other), other / (other + tie * strength)
    return {-1: win, 0: 1.0 - win - loss, 1: loss}[outcome]


def vote_log_likelihood(model, ratings, votes, *, tie, advantage=0.0, half_ties=False):
    """Sum over votes (left, right, outcome, weight), items by number; a half tie is half of each win."""
    total = 0.0
    for left, right, outcome, weight in votes:
        strength, other = math.exp(ratings[left] + advantage), math.exp(ratings[right])
        shares = [(-1, 0.5), (1, 0.5)] if half_ties and outcome == 0 else [(outcome, 1.0)]
        for result, share in shares:
            total += weight * share * math.log(vote_probability(model, result, strength, other, tie))
    return total


def most_likely_strengths(model, n_items, votes, *, alpha=0.0, advantage=False, ties="own"):
    """Ratings of mean 0, advantage and tie parameter of the highest penalised likelihood, by scipy's search.

    `ties` is "own" (a parameter), "half" or "drop".
    """
    votes = [vote for vote in votes if ties != "drop" or vote[2] != 0]
    fixed = 0.0 if model == "davidson" else 1.0

    def read(x):
        tie = fixed
        if ties == "own":
            tie = math.exp(x[-1]) if model == "davidson" else 1.0 + math.exp(x[-1])
        return x[:n_items], (x[n_items] if advantage else 0.0), tie

    def loss(x):
        ratings, lead, tie = read(x)
        value = vote_log_likelihood(model, ratings, votes, tie=tie, advantage=lead, half_ties=ties == "half")
        return -value + 0.5 * alpha * (np.sum(ratings**2) + lead**2) + 0.5 * np.mean(ratings) ** 2

    start = np.zeros(n_items + advantage + (ties == "own"))
    solution = minimize(loss, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 500})
    ratings, lead, tie = read(solution.x)
    return ratings - np.mean(ratings), lead, tie
