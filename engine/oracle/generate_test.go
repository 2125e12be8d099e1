package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

// generator makes random programs over small domains, so that joins meet,
// derivations multiply and recursion closes. Everything that it makes is text.
type generator struct {
	*rand.Rand
	bases   []*relation
	derived []*relation
	tags    map[string]bool // the constructs of the program
	views   int             // made so far, for their names
	renamed int             // relations so far
	foreign bool            // leave out what clingo does not know, or in another way
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), tags: map[string]bool{}}
}

// tag notes that the program has a construct, for the histogram.
func (g *generator) tag(construct string) { g.tags[construct] = true }

// in reports true in one of n cases.
func (g *generator) in(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

func float(f float64) value.Value {
	v, ok := value.OfFloat(f)
	if !ok {
		panic("oracle: no float")
	}
	return v
}

// domains are the values of each kind. 0.1 and 1e16 make sums that depend on the
// order of naive additions.
var domains = map[value.Kind][]value.Value{
	value.Int: {
		value.OfInt(0), value.OfInt(1), value.OfInt(2), value.OfInt(3), value.OfInt(-1),
	},
	value.Float: {
		float(0.5), float(1), float(0.1), float(-1.5), float(1e16), float(-1e16),
	},
	value.String:    {value.OfString("a"), value.OfString("b"), value.OfString("Cé")},
	value.Bool:      {value.OfBool(false), value.OfBool(true)},
	value.Bytes:     {value.OfBytes(""), value.OfBytes("\x00"), value.OfBytes("\xff\x00")},
	value.Timestamp: {value.OfTimestamp(0), value.OfTimestamp(1000), value.OfTimestamp(60000)},
}

const most = 1<<63 - 1

func (g *generator) value(c column) value.Value {
	switch {
	case c.nullable && g.in(3):
		return value.OfNull()
	case c.kind == value.Int && !g.foreign && g.in(60):
		return value.OfInt(most)
	}
	return pick(g, domains[c.kind])
}

func (g *generator) kind() value.Kind {
	if g.IntN(5) < 3 {
		return value.Int
	}
	return []value.Kind{
		value.String, value.Float, value.Timestamp, value.Bytes, value.Bool,
	}[min(g.IntN(6), 4)]
}

func (g *generator) columns(n int) []column {
	out := make([]column, n)
	for i := range out {
		out[i] = column{g.kind(), g.in(6)}
	}
	return out
}

// program makes a whole program.
func (g *generator) program() *source {
	g.bases = []*relation{{name: "b0", columns: []column{{kind: value.Int}, {kind: value.Int}}}}
	for i := range 2 + g.IntN(2) {
		g.bases = append(g.bases, &relation{
			name: fmt.Sprintf("b%d", i+1), columns: g.columns(1 + g.IntN(2) + g.IntN(6)/5),
		})
	}
	return g.rules()
}

// rules makes everything else of a program over the base relations.
func (g *generator) rules() *source {
	s := &source{schemas: slices.Clone(g.bases)}
	level := 0
	for i := range 2 + g.IntN(4) {
		level += g.IntN(2)
		g.derived = append(g.derived, &relation{
			name: fmt.Sprintf("d%d", i), columns: g.columns(1 + g.IntN(2) + g.IntN(8)/7),
			derived: true, level: level,
		})
	}
	for _, r := range g.derived {
		s.clauses = append(s.clauses, g.clauses(r)...)
	}
	for _, r := range g.derived {
		if g.IntN(5) > 0 {
			s.views = append(s.views, g.whole(r))
		}
	}
	for _, r := range g.bases {
		if g.in(3) {
			s.views = append(s.views, g.whole(r))
		}
	}
	for range 1 + g.IntN(3) {
		s.views = append(s.views, g.view())
	}
	for range g.IntN(3) {
		s.actions = append(s.actions, g.action(len(s.actions)))
	}
	return s
}

// whole is a view of all rows of a relation, whatever the key.
func (g *generator) whole(r *relation) view {
	var names []string
	for i := range r.columns {
		names = append(names, fmt.Sprintf("A%d", i))
	}
	goal := r.name + "(" + strings.Join(names, ", ") + ")"
	return view{
		name: "all_" + r.name, params: []param{{"any", value.Bool}},
		parts: []part{{goal: goal, body: []string{"$any <= true"}}},
	}
}

// readable returns the relations that a clause of r may read: without its own
// level, those that it may negate.
func (g *generator) readable(r *relation, own bool) []*relation {
	out := slices.Clone(g.bases)
	for _, other := range g.derived {
		if r == nil || other.level < r.level || own && other.level == r.level {
			out = append(out, other)
		}
	}
	return out
}

// clauses makes the clauses of a derived relation. The first reads what is below it
// only, so that the relation has types and rows.
func (g *generator) clauses(r *relation) []clause {
	if len(r.columns) == 2 && r.columns[0].kind == value.Int && r.columns[1].kind == value.Int &&
		g.in(2) {
		return g.closure(r)
	}
	var out []clause
	for i := range 1 + g.IntN(3) {
		if !g.foreign && g.in(4) {
			out = append(out, g.aggregate(r))
			continue
		}
		out = append(out, g.clause(r, i > 0))
	}
	return out
}

// closure makes a transitive closure, one of the ways to write it.
func (g *generator) closure(r *relation) []clause {
	var pairs []*relation
	for _, other := range g.readable(r, false) {
		fits := len(other.columns) == 2
		for i, c := range other.columns {
			fits = fits && c.kind == value.Int && (!c.nullable || r.columns[i].nullable)
		}
		if fits {
			pairs = append(pairs, other)
		}
	}
	e := pick(g, pairs).name
	out := []clause{{r.name + "(X, Y)", []string{e + "(X, Y)"}}}
	g.tag("recursion")
	switch g.IntN(4) {
	case 0:
		g.tag("left-linear recursion")
		out = append(out, clause{r.name + "(X, Z)", []string{r.name + "(X, Y)", e + "(Y, Z)"}})
	case 1, 2:
		g.tag("right-linear recursion")
		out = append(out, clause{r.name + "(X, Z)", []string{e + "(X, Y)", r.name + "(Y, Z)"}})
	default:
		g.tag("non-linear recursion")
		out = append(out, clause{r.name + "(X, Z)", []string{r.name + "(X, Y)", r.name + "(Y, Z)"}})
	}
	if g.in(4) {
		out[1].body = append(out[1].body, "X != Z")
	}
	return out
}

// clause makes a clause; a recursive one may read r's own level.
func (g *generator) clause(r *relation, recursive bool) clause {
	b := &body{g: g, head: r}
	from := g.readable(r, recursive)
	atoms, rarely := 1+g.IntN(5)/2, 4
	if !recursive && g.in(2) { // a clause that has rows
		atoms, rarely = 1, 8
	}
	for range atoms {
		b.atom(pick(g, from))
	}
	below := g.readable(r, false)
	for g.in(rarely) {
		b.negation(pick(g, below))
	}
	for g.in(rarely) {
		b.comparison()
	}
	for g.in(rarely) && len(b.computed) < 3 {
		b.computation()
	}
	if len(b.computed) > 0 && g.in(3) {
		b.useComputed(from, below)
	}
	terms := make([]string, len(r.columns))
	for i, c := range r.columns {
		terms[i] = b.headTerm(c)
	}
	g.Shuffle(len(b.literals), func(i, j int) {
		b.literals[i], b.literals[j] = b.literals[j], b.literals[i]
	})
	return clause{r.name + "(" + strings.Join(terms, ", ") + ")", b.literals}
}

// aggregate makes a clause with aggregates of what is below r.
func (g *generator) aggregate(r *relation) clause {
	b := &body{g: g, head: r}
	from := g.readable(r, false)
	for range 1 + g.IntN(2) {
		b.atom(pick(g, from))
	}
	if g.in(4) {
		b.negation(pick(g, from))
	}
	if g.in(4) {
		b.comparison()
	}
	if g.in(4) {
		b.computation()
	}
	terms := make([]string, len(r.columns))
	several := g.in(3) // one aggregate with several results
	at := g.IntN(len(terms))
	aggregated, grouped := 0, 0
	for i, c := range r.columns {
		aggregates := b.aggregates(c, several)
		if (i == at || !several && g.in(3)) && len(aggregates) > 0 {
			name := pick(g, aggregates)
			terms[i] = name
			g.tag(name[:strings.Index(name, "<")])
			aggregated++
			continue
		}
		terms[i] = b.headTerm(c)
		grouped++
	}
	switch {
	case aggregated > 1:
		g.tag("several aggregates")
	case aggregated == 1 && grouped == 0:
		g.tag("aggregate without group")
	}
	if aggregated > 0 {
		g.tag("aggregate")
	}
	return clause{r.name + "(" + strings.Join(terms, ", ") + ")", b.literals}
}
