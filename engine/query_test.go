package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/value"
)

// TestQueryPages compares pieces of a result with the whole.
func TestQueryPages(t *testing.T) {
	program := hotProgram()
	e := deployed(t, program)
	g := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		apply(t, e, 1, ins("edge", g.IntN(20), g.IntN(1000)))
	}
	q := program.query(nil, []string{"X", "Y"}, a("edge", "X", "Y"))
	whole, err := e.Query(q, nil, QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		opt := QueryOptions{MaxRows: 1 + g.IntN(350), Offset: g.IntN(350) - 20}
		part, err := e.Query(q, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		from := min(max(opt.Offset, 0), whole.Count)
		to := min(from+opt.MaxRows, whole.Count)
		if !slices.Equal(part.Rows, whole.Rows[2*from:2*to]) || part.Count != to-from ||
			part.Truncated != (to < whole.Count) {
			t.Fatalf("%+v: %d rows, truncated %v", opt, part.Count, part.Truncated)
		}
	}
}

// BenchmarkQueryAtItsLimit is queries that end at the default budget of a server,
// in a graph that is larger than the caches: the longest that they hold up writers.
func BenchmarkQueryAtItsLimit(b *testing.B) {
	const budget = 800_000
	program := hotProgram()
	program.derived("reach", "x", "y")
	program.rule(a("reach", "X", "Y"), a("edge", "X", "Y"))
	program.rule(a("reach", "X", "Z"), a("reach", "X", "Y"), a("edge", "Y", "Z"))
	e := loadedEngine(b, program, 1_000_000)
	for _, c := range []struct {
		name string
		body []lit
	}{
		{"scan", []lit{a("edge", "X", "Y")}},
		{"twohop", []lit{a("edge", "X", "Y"), a("edge", "Y", "Z")}},
		{"triangle", []lit{a("edge", "X", "Y"), a("edge", "Y", "Z"), a("edge", "Z", "X")}},
		{"reach", []lit{a("reach", 5, "X")}},
		{"product", []lit{a("edge", "X", "Y"), a("edge", "Z", "W")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := program.query(nil, []string{"X"}, c.body...)
			longest := time.Duration(0)
			for b.Loop() {
				began := time.Now()
				_, err := e.Query(q, nil, QueryOptions{MaxRows: 10_000, Budget: budget})
				longest = max(longest, time.Since(began))
				if err != nil && !errors.Is(err, ErrBudget) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
		})
	}
}

// BenchmarkQueryBound is a query for the rows of one key: the same one again and again,
// and one after the other in a graph that is larger than the caches.
func BenchmarkQueryBound(b *testing.B) {
	program := hotProgram()
	e := loadedEngine(b, program, 1_000_000)
	q := program.query([]string{"H"}, []string{"H", "Y"}, a("r1", "H", "Y"))
	for _, keys := range []int{1, 50_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			g := rand.New(rand.NewPCG(3, 4))
			key := vals(0)
			b.ReportAllocs()
			for b.Loop() {
				key[0] = value.OfInt(int64(g.IntN(keys) * 2))
				if _, err := e.Query(q, key, QueryOptions{MaxRows: 1000}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
