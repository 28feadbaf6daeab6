"""What a store of profiles must do, written once for every database."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import strategies as st

labels = st.sampled_from(["p1", "p2", "p3", "ü/'\"\\\t\n%s", "\0"])
categories = st.sampled_from(
    ["Arts", "Arts/Music", "Arts/Music/Choirs", "Sports/Soccer", "", "Arts\0/x", "ß'\\"]
)
counts = st.lists(st.tuples(labels, categories, st.integers(1, 2**40)), max_size=12)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(-3, 9), counts),
        st.tuples(st.just("forget"), labels, st.none()),
        st.tuples(st.just("again"), st.none(), st.none()),
    ),
    max_size=10,
)


def ordered(counter) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))


class Model:
    """A dictionary that does what a store of profiles promises."""

    def __init__(self):
        self.last, self.profiles = 0, {}

    def add(self, upto, counts):
        if upto > self.last:
            self.last = upto
            for label, category, more in counts:
                profile = self.profiles.setdefault(label.replace("\0", "\ufffd"), Counter())
                profile[category.replace("\0", "\ufffd")] += more

    def forget(self, label) -> int:
        return sum(self.profiles.pop(label.replace("\0", "\ufffd"), {}).values())

    def assert_same(self, store, names=("p1", "p2", "p3", "ü/'\"\\\t\n%s", "\0")):
        assert store.last == self.last
        for name in names:
            profile = self.profiles.get(name.replace("\0", "\ufffd"))
            found = store.counts_of(name)
            assert found == profile
            assert found is None or list(found) == list(ordered(profile))
        assert total(store) == sum(sum(profile.values()) for profile in self.profiles.values())


def total(store) -> int:
    """Sum the counts of all labels of the store's stream."""
    query = "SELECT label, count FROM querycloak_profile WHERE stream = ?"
    return sum(count for _, count in store._read(store._sql(query), (store._stream,)))


def follow(reopen, store, steps) -> None:
    """Do the same to a store and to the model, and compare after each step."""
    model = Model()
    for step, one, more in steps:
        if step == "add":
            upto = max(model.last + one, 0)
            store.add(upto, more)
            model.add(upto, more)
        elif step == "forget":
            assert store.delete(one) == model.forget(one)
        else:
            store.close()
            store = reopen()
        model.assert_same(store)
    store.close()


def made_up(upto: int):
    """Make the counts that end at a line: always the same for the same line."""
    draw = random.Random(upto)
    return [(f"p{draw.randrange(40)}", f"{draw.choice('ABC')}/{draw.randrange(5)}", 1) for _ in range(200)]


def model_of(uptos) -> Model:
    """Count those parts in memory."""
    model = Model()
    for upto in uptos:
        model.add(upto, made_up(upto))
    return model
