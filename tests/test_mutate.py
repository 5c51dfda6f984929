# SPDX-License-Identifier: MIT
"""tools/mutate: its rules find each kind of mistake, a mutant counts only if it changes the object
code, and the check that kills it is named with its message."""

import argparse
import importlib.machinery
import importlib.util
import json

import pytest
from conftest import ANY, ROOT
from lib import mutants
from lib.mutants import Mutant
from lib.port import UsageError

LOADER = importlib.machinery.SourceFileLoader("mutate", str(ROOT / "tools" / "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", LOADER))
LOADER.exec_module(mutate)

C = r'''
#define PAGE_BITS 12
/* if (x < 1) in a comment, and "a < b" in a string, are no code. */
static const struct row rows[] = {
	{ 7, "one" },
	{ 8, "two" },
};

void first_one(struct lock *l, u64 n)
{
	int i = 0;

	lock_it(l);
	if (n < 4 && l)
		first_step((u32)n, i);
	second_step("a < b");
	unlock_it(l);
	asm volatile("fence\n\tsync %0" ::"r"(n) : "memory");
	for (i = 1; i != n; i++)
		continue;
}

static int second_one(void)
{
	return __atomic_load_n(&x, __ATOMIC_ACQUIRE);
}
'''
IN_C = [
    ("PAGE_BITS", "constant", "#define PAGE_BITS 13"),
    ("rows", "constant", '{ 6, "one" },'),
    ("rows", "rows", '{ 8, "two" },\n{ 7, "one" },'),
    ("first_one", "deleted", "{}"),
    ("first_one", "unpaired", "{}\n{}"),
    ("first_one", "negated", "if (!(n < 4 && l))"),
    ("first_one", "always", "if ((n < 4 && l) || 1)"),
    ("first_one", "never", "for (i = 1; (i != n) && 0; i++)"),
    ("first_one", "operator", "if (n <= 4 && l)"),
    ("first_one", "operator", "if (n < 4 || l)"),
    ("first_one", "width", "first_step((u16)n, i);"),
    ("first_one", "argument", "first_step(i, i);"),
    ("first_one", "exchanged", 'unlock_it(l);\nsecond_step("a < b");'),
    ("first_one", "instruction", 'asm volatile("fence\\n\\t" ::"r"(n) : "memory");'),
    ("first_one", "instruction", 'asm volatile("\\n\\tsync %0" ::"r"(n) : "memory");'),
    ("first_one", "early return", "return;\tint i = 0;"),
    ("second_one", "early return", "return 0;\treturn __atomic_load_n(&x, __ATOMIC_ACQUIRE);"),
    ("second_one", "barrier", "return __atomic_load_n(&x, __ATOMIC_RELAXED);"),
]

ASSEMBLY = r'''
FUNCTION(copy_word)
	load	t1, 8(a0)	/* add t1, t1, 4 */
	store	t1, (a1)
	.cfi_adjust_cfa_offset 16
	bzero	t1, 1f
1:	ret
END(copy_word)
'''
IN_ASSEMBLY = [
    ("deleted", "load\tt1, 8(a0)\t/* add t1, t1, 4 */", "/* add t1, t1, 4 */"),
    ("deleted", ".cfi_adjust_cfa_offset 16", ""),
    ("deleted", "1:\tret", "1:"),
    ("constant", "load\tt1, 8(a0)\t/* add t1, t1, 4 */", "load\tt1, 9(a0)\t/* add t1, t1, 4 */"),
    ("register", "store\tt1, (a1)", "store\ta1, (a1)"),
    ("always", "bzero\tt1, 1f", "go 1f"),
]


def made_of(name: str, text: str, folder) -> list[Mutant]:
    """By the rules, of a text."""
    (folder / name).write_text(text)
    return mutants.of_file(folder, name, {"branches": ["b*"], "jumps": ["go"]})


def test_rules_of_c(tmp_path):
    found = {(m.function, m.rule, m.new) for m in made_of("a.c", C, tmp_path)}
    assert [x for x in IN_C if x not in found] == []
    assert {rule for _, rule, _ in found} == {rule for _, rule, _ in IN_C}
    assert not any("comment" in new or "a <= b" in new for _, _, new in found)


def test_rules_of_assembly(tmp_path):
    found = made_of("a.S", ASSEMBLY, tmp_path)
    assert {m.function for m in found} == {"copy_word"}
    texts = {(m.rule, m.old, m.new) for m in found}
    assert [x for x in IN_ASSEMBLY if x not in texts] == []
    assert any(m.rule == "exchanged" and m.new.startswith("store") for m in found)


def test_rules_of_data(tmp_path):
    found = made_of("a.json", '{"sp": 2, "list": [3], "word": "4"}', tmp_path)
    assert [(m.function, m.new) for m in found] == [
        ("sp", f'{{"sp": {n}, "list": [3], "word": "4"}}') for n in (1, 3)]


def test_lines_stay(tmp_path):
    """A debugger's lines, and messages that name a line, are no difference."""
    for m in made_of("a.c", C, tmp_path) + made_of("a.S", ASSEMBLY, tmp_path):
        text = (tmp_path / m.file).read_text()
        assert m.apply(text).count("\n") == text.count("\n")


def chosen(**given) -> list[Mutant]:
    """As with these arguments."""
    return mutate.choose(argparse.Namespace(**{
        "arch": ANY, "set": "shared", "only": None, "saved": None, "sample": 0, "seed": 1} | given))


def test_choice(tmp_path, capsys):
    """A seed gives the same sample again, and --from the survivors that are still there."""
    lock = chosen(only="kernel/lock/lock.c:set_holder")
    assert len(lock) > 4 and {m.function for m in lock} == {"set_holder"}
    many = [[m.key() for m in chosen(sample=9, seed=s)[:9]] for s in (1, 1, 2)]
    assert many[0] == many[1] != many[2]
    for m in lock[:3]:
        m.verdict = "survived"
    lock[1].verdict, lock[2].new = "killed", "no such line"
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps([vars(m) for m in lock[:3]]))
    assert [m.key() for m in chosen(saved=saved)] == [lock[0].key()]
    assert "gone: kernel/lock/lock.c:set_holder: no such line" in capsys.readouterr().out
    with pytest.raises(UsageError, match="no such code"):
        chosen(only="kernel/lock/lock.c:no_such_function")


LOCK = "kernel/lock/lock.c"
PLANTED = [  # a text, its replacement, the verdict, the check, words of the message
    ("WRITE_ONCE(l->holder_pc, pc);", "WRITE_ONCE(l->holder_pc, pc - 65536);", "killed", "near",
     r"lock\.holder_is_named: "),
    ("count_up(&l->complaints);", "count_up(&l->complain);", "none", "", "does not compile"),
    ("static void set_holder(struct spinlock *l, unsigned long pc)\n{",
     "static void set_holder(struct spinlock *l, unsigned long pc)\n{ int unused;", "none", "",
     "warns"),
    ("return -1;", "return -1 - 0;", "none", "", "the same object code"),
    ("static noinline void spin_slow(struct spinlock *l, u32 ticket, unsigned long pc)\n{",
     "static noinline void spin_slow(struct spinlock *l, u32 ticket, unsigned long pc)\n"
     "{ extern void far_away(void); far_away();", "killed", "build", "far_away"),
    ("times at %pS and", "times at  %pS and", "survived", "", ""),
]


def test_verdicts():
    """One of each, in a kernel. Afterwards the copy is as it was."""
    campaign, tree = mutate.Campaign(ANY, "near"), mutate.Tree(ANY, "test")
    text = (ROOT / LOCK).read_text()
    before = tree.code(tree.objects(LOCK))
    for old, new, verdict, by, words in PLANTED:
        assert text.count(old) == 1, old
        at = text.index(old)
        m = Mutant(LOCK, "", "planted", ((at, at + len(old), new),))
        assert m.compare(text)
        campaign.judge(tree, m)
        assert (m.verdict, m.by) == (verdict, by), mutate.line_of(m)
        assert mutate.re.search(words, m.message), m.message
        assert (tree.path / LOCK).read_text() == text
        assert tree.code(tree.objects(LOCK)) == before
    campaign.known[LOCK, m.old, m.new] = "only words"
    campaign.judge(tree, m)
    assert (m.verdict, m.message) == ("equivalent", "only words")
    assert campaign.killers[LOCK] == {"lock.holder_is_named": 1}


def test_equivalents_are_read(tmp_path, monkeypatch):
    """A file beside the list, or of the tree; blanks are no difference."""
    (tmp_path / "arch" / ANY).mkdir(parents=True)
    (tmp_path / "arch" / ANY / "trap.c").touch()
    data = tmp_path / "arch" / ANY / "mutations.toml"
    data.write_text('[[equivalent]]\nfile = "trap.c"\nold = "  a\\n\\tb"\n'
                    'new = ""\nbecause = "so"\n')
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    assert mutate.equivalents(ANY) == {(f"arch/{ANY}/trap.c", "a\nb", ""): "so"}
    data.write_text('[[equivalent]]\nfile = "trap.c"\n')
    with pytest.raises(UsageError, match="an equivalent has file, old, new, because"):
        mutate.equivalents(ANY)


def test_each_equivalent_is_there():
    """Its lines stand in its file: else the reason is about code that has gone."""
    for (file, old, _), why in mutate.equivalents(ANY).items():
        lines = [x.strip() for x in (ROOT / file).read_text().split("\n")]
        assert why and all(x in lines for x in old.split("\n")), (file, old)
