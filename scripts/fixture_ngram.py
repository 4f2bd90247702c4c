"""Reference of interpolated modified Kneser-Ney n-gram models, from the definitions, in plain dictionaries.

Source: S. F. Chen and J. Goodman, "An empirical study of smoothing techniques for language modeling",
Computer Speech and Language 13 (1999), section 3, modified Kneser-Ney smoothing. Prints the mean cross
entropy, in nats per predicted token, of the held-out lines of a text file: those whose number, from 0, is
divisible by 10.
"""

import argparse
import math
import pathlib
import random
from collections import Counter, defaultdict


def adjusted_counts(training, order):
    """The counts c of the n-grams of each order n = 1..N, as a list of dictionaries.

    c(g) = occurrences of g                                                       if n = N,
    c(g) = |{v : v g occurs}| + occurrences of g at the start of a document       if n < N.
    N-grams do not cross documents. The first token of a document is context only: no unigram occurs there.
    """
    counts = []
    for n in range(1, order + 1):
        occurrences, starts, left = Counter(), Counter(), defaultdict(set)
        for document in training:
            for i in range(1 if n == 1 else 0, len(document) - n + 1):
                gram = tuple(document[i:i + n])
                occurrences[gram] += 1
                if i == 0:
                    starts[gram] += 1
                else:
                    left[gram].add(document[i - 1])
        counts.append(dict(occurrences) if n == order else {g: len(left[g]) + starts[g] for g in occurrences})
    return counts


def discounts(counts):
    """The discounts [0, D1, D2, D3+] of one order.

    Dk = k - (k + 1) Y n(k+1) / nk,   Y = n1 / (n1 + 2 n2),   nk the number of n-grams whose count is k;
    [0, 0.5, 1, 1.5] if n1, n2 or n3 is 0 or if some Dk is outside [0, k].
    """
    of = Counter(counts.values())
    if of[1] and of[2] and of[3]:
        y = of[1] / (of[1] + 2 * of[2])
        d = [0.0] + [k - (k + 1) * y * of[k + 1] / of[k] for k in (1, 2, 3)]
        if all(0 <= d[k] <= k for k in (1, 2, 3)):
            return d
    return [0.0, 0.5, 1.0, 1.5]


def kneser_ney(training, order, vocabulary):
    """Returns prob(context, token) for documents of token ids, with ids below `vocabulary`.

    p_n(w|h) = max(c(hw) - D(c(hw)), 0) / C(h) + gamma(h) p_(n-1)(w|h'),   p_0 = 1 / vocabulary,
    gamma(h) = (D1 N1(h) + D2 N2(h) + D3+ N3+(h)) / C(h),   C(h) = sum_w c(hw),
    where h' is h without its first token, D(c) is D1, D2 or D3+ (0 if c = 0), and Nk(h) is the number of w
    with c(hw) = k. If C(h) = 0, then p_n(w|h) = p_(n-1)(w|h'). The order n is N, or one more than the length
    of a shorter context.
    """
    counts = adjusted_counts(training, order)
    discount = [discounts(c) for c in counts]
    totals, masses = [], []  # for each order: C(h), and the numerator of gamma(h)
    for c, d in zip(counts, discount):
        total, mass = defaultdict(int), defaultdict(float)
        for gram, count in c.items():
            total[gram[:-1]] += count
            mass[gram[:-1]] += d[min(count, 3)]
        totals.append(dict(total))
        masses.append(dict(mass))

    def prob(context, token):
        context = tuple(context)[max(0, len(context) - order + 1):]
        p = 1 / vocabulary
        for n in range(1, len(context) + 2):
            h = context[len(context) - n + 1:]
            total = totals[n - 1].get(h, 0)
            if total:
                count = counts[n - 1].get(h + (token,), 0)
                gamma = masses[n - 1][h] / total
                p = max(count - discount[n - 1][min(count, 3)], 0) / total + gamma * p
        return p

    return prob


def read(path):
    """Training documents, held-out documents, and the vocabulary size (with the characters of both).

    A document is a line that is not blank, between two boundaries; ids go by the bytes of the characters.
    """
    lines = pathlib.Path(path).read_bytes().decode("utf-8").split("\n")
    documents = [(number, "\n" + line + "\n") for number, line in enumerate(lines) if line.strip()]
    characters = sorted({"\n"}.union(*(text for _, text in documents)), key=lambda c: c.encode("utf-8"))
    ids = {c: i for i, c in enumerate(characters)}
    training = [[ids[c] for c in text] for number, text in documents if number % 10]
    held_out = [[ids[c] for c in text] for number, text in documents if number % 10 == 0]
    return training, held_out, len(ids)


def cross_entropy(prob, documents, known=None):
    """The mean of -log p(token | tokens before it in the document), over all tokens but the first of each, and but
    the next known[i] of document i."""
    skipped = known or [0] * len(documents)
    losses = [-math.log(prob(d[:i], d[i])) for d, n in zip(documents, skipped) for i in range(1 + n, len(d))]
    return math.fsum(losses) / len(losses)


def check(prob, documents, order, vocabulary, rng):
    """The largest |sum_w p(w|h) - 1| over 50 contexts h: half from the documents, half random ids."""
    worst = 0.0
    for number in range(50):
        if number % 2:
            context = [rng.randrange(vocabulary) for _ in range(rng.randrange(order + 1))]
        else:
            document = rng.choice(documents)
            context = document[:rng.randrange(len(document))]
        worst = max(worst, abs(math.fsum(prob(context, w) for w in range(vocabulary)) - 1))
    if worst > 1e-12:
        raise SystemExit(f"order {order}: probabilities sum to 1 only within {worst:g}")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="text, UTF-8")
    parser.add_argument("--check", action="store_true", help="check that probabilities sum to 1 within 1e-12")
    args = parser.parse_args()
    training, held_out, vocabulary = read(args.file)
    if not training or not held_out:
        raise SystemExit(f"{args.file}: needs lines to count and lines to hold out")
    print(f"training {len(training)}  held out {len(held_out)}  vocabulary {vocabulary}")
    for order in range(1, 6):
        prob = kneser_ney(training, order, vocabulary)
        print(f"order {order}: {cross_entropy(prob, held_out):.12f}", end="")
        if args.check:
            worst = check(prob, training + held_out, order, vocabulary, random.Random(order))
            print(f"  sums within {worst:.1e}", end="")
        print()


if __name__ == "__main__":
    main()
