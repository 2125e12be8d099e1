package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// churnProgram uses every construct that keeps values: derived and recursive rows,
// negation, computed text, aggregates with and without an order, windows, row errors.
const churnProgram = `+edge(src: string, dst: string)
+note(who: string, text: bytes, at: timestamp, n: float?)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
alone(X) <- note(X, _, _, _), !edge(X, _)
named(X, T) <- edge(X, Y), T = concat("from ", X, " to ", Y)
wrong(X, N) <- edge(X, Y), N = to_int(Y)
totals(X, count<Y>, min<Y>) <- edge(X, Y)
sums(X, sum<N>) <- note(X, _, _, N)
top(X, top_k<2, Y, desc>) <- edge(X, Y)
view reached($x: string) := ?reach($x, Y)
view page($x: string) := names: ?named($x, T) order by T desc limit 3, totals: ?totals($x, N, M),
  alone: ?alone($x), wrong: ?wrong($x, N), sums: ?sums($x, N), top: ?top($x, Y)
view notes($x: string) := ?note($x, B, T, N), B != x"00", T > t"2026-11-30T12:00:00Z"
`

func churnDeploy(t *testing.T, e *Engine, source string) {
	t.Helper()
	file, err := parse.Program(source)
	if err != nil {
		t.Fatal(err)
	}
	p, err := analysis.Analyse(file, source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Deploy(p, true); err != nil {
		t.Fatal(err)
	}
}

// churn drives an engine with facts and keys of ever new values.
type churn struct {
	t        *testing.T
	random   *rand.Rand
	e        *Engine
	revision uint64
	serial   int
	facts    []analysis.Op
	keys     []*Key
}

func (c *churn) name() value.Value {
	c.serial++
	return value.OfString(fmt.Sprintf("somebody whose name is %d", c.serial/8+c.random.IntN(12)))
}

func (c *churn) op() analysis.Op {
	if c.random.IntN(2) == 0 {
		return analysis.Op{Relation: "edge", Row: []value.Value{c.name(), c.name()}}
	}
	n := value.OfNull()
	if c.random.IntN(3) > 0 {
		n, _ = value.OfFloat(float64(c.serial) + 0.5)
	}
	return analysis.Op{Relation: "note", Row: []value.Value{
		c.name(), value.OfBytes(fmt.Sprint("bytes ", c.serial)),
		value.OfTimestamp(1_796_040_000_000 + int64(c.serial)), n,
	}}
}

func (c *churn) apply(ops []analysis.Op) {
	c.t.Helper()
	c.revision++
	if _, _, err := c.e.Apply(c.revision, ops); err != nil {
		c.t.Fatal(err)
	}
}

// step is one commit, and now and then a key that comes or goes.
func (c *churn) step(factsMax, keysMax int) {
	c.t.Helper()
	var ops []analysis.Op
	for range 1 + c.random.IntN(4) {
		op := c.op()
		ops, c.facts = append(ops, op), append(c.facts, op)
	}
	for len(c.facts) > factsMax {
		op := c.facts[0]
		op.Delete = true
		ops, c.facts = append(ops, op), c.facts[1:]
	}
	c.apply(ops)
	if c.random.IntN(3) == 0 {
		view := []string{"reached", "page", "notes"}[c.random.IntN(3)]
		k, err := c.e.Watch(view, []value.Value{c.name()})
		if err != nil {
			c.t.Fatal(err)
		}
		c.keys = append(c.keys, k)
	}
	if len(c.keys) > keysMax {
		i := c.random.IntN(len(c.keys))
		c.e.Unwatch(c.keys[i])
		c.keys[i] = c.keys[len(c.keys)-1]
		c.keys = c.keys[:len(c.keys)-1]
	}
	if c.random.IntN(2) == 0 {
		c.changes()
	}
}

// changes reads everything that is told, so that a value that went too early shows.
func (c *churn) changes() {
	c.e.Changes(func(k *Key, _ uint64, parts []Change) {
		for i := range parts {
			rows := append(c.e.Rows(k, i, nil), parts[i].Insert...)
			for _, v := range append(rows, parts[i].Retract...) {
				if v.Kind() == value.Invalid {
					c.t.Fatalf("%s%v holds a value that is gone", k.View(), k.Values())
				}
			}
		}
	})
}

// empty takes everything away, and lets the sweeps catch up.
func (c *churn) empty() {
	for _, k := range c.keys {
		c.e.Unwatch(k)
	}
	c.keys = nil
	for i := range c.facts {
		c.facts[i].Delete = true
	}
	c.apply(c.facts)
	c.facts = nil
	c.changes()
	for range 20 {
		c.apply(nil)
	}
}

// TestChurnKeepsNoSymbols drives facts, keys and programs through an engine: when all
// is gone, the dictionary holds the constants of the program again and nothing else.
func TestChurnKeepsNoSymbols(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &churn{t: t, random: rand.New(rand.NewPCG(seed, 0)), e: New(nil)}
	churnDeploy(t, c.e, churnProgram)
	constants := c.e.Stats().Symbols
	for round := range 6 {
		for range 300 {
			c.step(100, 10)
		}
		if round%2 == 1 {
			// The same program again, while keys are watched, and then one without notes.
			churnDeploy(t, c.e, churnProgram)
			c.step(100, 10)
		}
		if round == 3 {
			c.changes()
			churnDeploy(t, c.e, "+edge(src: string, dst: string)\n")
			c.keys = nil
			churnDeploy(t, c.e, churnProgram)
		}
		c.empty()
		if got := c.e.Stats(); got.Symbols != constants || got.Facts != 0 || got.DerivedRows != 0 {
			t.Fatalf("round %d: %d symbols, %d facts and %d derived rows are left, want %d, 0, 0",
				round, got.Symbols, got.Facts, got.DerivedRows, constants)
		}
	}
}

// TestChurnMemory replaces facts and keys for a long time: neither the dictionary nor
// anything else grows.
func TestChurnMemory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &churn{t: t, random: rand.New(rand.NewPCG(seed, 0)), e: New(nil)}
	churnDeploy(t, c.e, churnProgram)
	early, most := 0, 0
	for i := range 6000 {
		c.step(60, 6)
		if i%10 == 0 {
			most = max(most, c.e.Stats().Bytes)
		}
		if i == 2000 {
			early = most
		}
	}
	if most > early+early/4+1<<18 {
		t.Errorf("the engine grew from %d to %d bytes under churn", early, most)
	}
	if s := c.e.Stats().Symbols; s > 1000 {
		t.Errorf("%d symbols are held for %d facts and %d keys", s, len(c.facts), len(c.keys))
	}
}
