package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// TestLargeAnswers asks for pieces of results that take many runs, with repetitions and
// in any order, at once and in turns, and compares them with sorted facts.
func TestLargeAnswers(t *testing.T) {
	const facts = 40_000
	program := (&builder{}).base("p", "a", "b", "c:string")
	e := deployed(t, program)
	g := rand.New(rand.NewPCG(5, 6))
	var ops []analysis.Op
	for range facts {
		text := string(rune('a' + g.IntN(26)))
		ops = append(ops, ins("p", g.IntN(300), g.IntN(200)-100, text))
	}
	apply(t, e, 1, ops...)
	for _, columns := range [][]string{{"X", "Y", "Z"}, {"Y", "X"}, {"Z"}, {"Y"}, {"X", "Z"}, {}} {
		query := program.query(nil, columns, a("p", "X", "Y", "Z"))
		whole := distinctRows(ops, columns)
		for range 40 {
			q, opt := *query, QueryOptions{}
			for column := range columns {
				if g.IntN(3) == 0 {
					q.Order = append(q.Order, analysis.Order{Column: column, Descending: g.IntN(2) > 0})
				}
			}
			if g.IntN(2) == 0 {
				q.Limit, q.Offset = 1+g.IntN(facts), g.IntN(facts)
			}
			if g.IntN(2) == 0 {
				q.Limit, q.Offset = 1+g.IntN(100), g.IntN(10)
			}
			if g.IntN(2) == 0 {
				opt.MaxRows, opt.Offset = 1+g.IntN(facts), g.IntN(facts)
			}
			if g.IntN(3) == 0 {
				opt.MaxRows, opt.Offset = 1+g.IntN(100), 0
			}
			rows, truncated := page(whole, &q, opt)
			wantAnswer(t, e, &q, opt, rows, truncated)
		}
	}
}

// distinctRows are the different rows of some columns of p.
func distinctRows(ops []analysis.Op, columns []string) [][]value.Value {
	var rows [][]value.Value
	for _, op := range ops {
		var row []value.Value
		for _, c := range columns {
			row = append(row, op.Row[c[0]-'X'])
		}
		rows = append(rows, row)
	}
	compare := func(a, b []value.Value) int { return slices.CompareFunc(a, b, value.Compare) }
	slices.SortFunc(rows, compare)
	return slices.CompactFunc(rows, func(a, b []value.Value) bool { return compare(a, b) == 0 })
}

// page returns what a query wants of its whole result, flat.
func page(whole [][]value.Value, q *analysis.Query, opt QueryOptions) ([]value.Value, bool) {
	rows := slices.Clone(whole)
	slices.SortStableFunc(rows, func(a, b []value.Value) int {
		for _, o := range q.Order {
			c := value.Compare(a[o.Column], b[o.Column])
			if o.Descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	if q.Limit > 0 {
		rows = rows[min(q.Offset, len(rows)):]
		rows = rows[:min(q.Limit, len(rows))]
	}
	rows = rows[min(opt.Offset, len(rows)):]
	truncated := opt.MaxRows > 0 && len(rows) > opt.MaxRows
	if truncated {
		rows = rows[:opt.MaxRows]
	}
	return slices.Concat(rows...), truncated
}

// wantAnswer compares the answers to a query at once and in turns.
func wantAnswer(t *testing.T, e *Engine, q *analysis.Query, opt QueryOptions,
	rows []value.Value, truncated bool,
) {
	t.Helper()
	check := func(how string, got QueryResult, err error) {
		t.Helper()
		if err != nil || !slices.Equal(got.Rows, rows) || got.Truncated != truncated ||
			len(rows) != got.Count*len(q.Output) {
			t.Fatalf("%s: order %v, limit %d, offset %d, %+v: %d rows, truncated %v, %v; "+
				"want %d cells, truncated %v", how, q.Order, q.Limit, q.Offset, opt, got.Count,
				got.Truncated, err, len(rows), truncated)
		}
	}
	got, err := e.Query(q, nil, opt)
	if len(q.Output) == 0 {
		rows = nil
		if got.Count != cmp.Compare(got.Count, 0) {
			t.Fatalf("%d rows without columns", got.Count)
		}
		return
	}
	check("at once", got, err)
	pin, err := e.Pin(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		pin.Close()
		for e.SweepPins(1) {
		}
	}()
	v, err := pin.Query(q, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	for !v.Step(0) {
	}
	for _, piece := range v.result.pieces {
		if cap(piece) > pieceValues {
			t.Fatalf("%d values were allocated in one turn", cap(piece))
		}
	}
	got, err = v.Result()
	check("in turns", got, err)
}
