package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

// body makes the literals of a clause, query or statement.
type body struct {
	g        *generator
	head     *relation // nil in a query
	literals []string
	vars     []variable // bound by atoms, parameters and computations
	computed []string   // the names of those that computations bind
	// recursive bodies read the head's level: what they compute must have bounds.
	recursive bool
}

type variable struct {
	name     string
	kind     value.Kind
	nullable bool
	computed bool
}

func (b *body) add(format string, args ...any) {
	b.literals = append(b.literals, fmt.Sprintf(format, args...))
}

// bind adds a variable of a new name.
func (b *body) bind(kind value.Kind, nullable bool) string {
	prefix := strings.ToUpper(kind.String()[:1])
	if kind == value.Bytes {
		prefix = "Y"
	}
	name := fmt.Sprintf("%s%d", prefix, len(b.vars))
	b.vars = append(b.vars, variable{name: name, kind: kind, nullable: nullable})
	return name
}

// bound returns the names of bound variables of a kind.
func (b *body) bound(kind value.Kind) []string {
	var out []string
	for _, v := range b.vars {
		if v.kind == kind {
			out = append(out, v.name)
		}
	}
	return out
}

// old returns the variables of a kind that atoms or parameters bind.
func (b *body) old(kind value.Kind) []string {
	var out []string
	for _, v := range b.vars {
		if v.kind == kind && !v.computed {
			out = append(out, v.name)
		}
	}
	return out
}

func (b *body) constant(c column) string { return b.g.value(c).String() }

// constantOf returns a constant for a column of a relation. Whether null stands in a
// derived one, analysis finds out.
func (b *body) constantOf(r *relation, c column) string {
	c.nullable = c.nullable && !r.derived
	return b.constant(c)
}

// meets notes that a variable stands in a column: one that cannot be null there is
// never null.
func (b *body) meets(name string, c column) {
	for i := range b.vars {
		if b.vars[i].name == name && !c.nullable {
			b.vars[i].nullable = false
		}
	}
}

// atom adds an atom of a relation.
func (b *body) atom(r *relation) { b.literals = append(b.literals, b.newAtom(r)) }

func (b *body) newAtom(r *relation) string {
	g := b.g
	if b.head != nil && r.derived && r.level == b.head.level {
		b.recursive = true
		g.tag("recursion")
		if r != b.head {
			g.tag("mutual recursion")
		}
	}
	terms := make([]string, len(r.columns))
	for i, c := range r.columns {
		old := b.old(c.kind)
		switch n := g.IntN(20); {
		case n < 9 && len(old) > 0:
			terms[i] = pick(g, old)
			b.meets(terms[i], c)
			if slices.Contains(terms[:i], terms[i]) {
				g.tag("repeated variable")
			}
		case n == 18:
			terms[i] = b.constantOf(r, c)
			g.tag("constant in an atom")
		case n == 19 && i > 0:
			terms[i] = "_"
			g.tag("wildcard")
		default:
			terms[i] = b.bind(c.kind, c.nullable)
		}
	}
	return r.name + "(" + strings.Join(terms, ", ") + ")"
}

// negation adds a negation of a relation.
func (b *body) negation(r *relation) {
	g := b.g
	terms := make([]string, len(r.columns))
	for i, c := range r.columns {
		bound := b.bound(c.kind)
		switch n := g.IntN(10); {
		case n < 7 && len(bound) > 0:
			terms[i] = pick(g, bound)
			if slices.Contains(b.computed, terms[i]) {
				g.tag("negation of what is computed")
			}
		case n == 8:
			terms[i] = b.constantOf(r, c)
			g.tag("constant under negation")
		default:
			terms[i] = "_"
			g.tag("_ under negation")
		}
	}
	g.tag("negation of " + map[bool]string{true: "derived", false: "base"}[r.derived])
	if slices.ContainsFunc(b.literals, func(l string) bool { return strings.HasPrefix(l, "!") }) {
		g.tag("several negations")
	}
	begins := func(l string) bool { return strings.HasPrefix(l, r.name+"(") }
	if slices.ContainsFunc(b.literals, begins) {
		g.tag("relation read and negated")
	}
	b.add("!%s(%s)", r.name, strings.Join(terms, ", "))
}

// comparison adds a comparison between what is bound.
func (b *body) comparison() {
	if len(b.vars) == 0 {
		return
	}
	g := b.g
	v := pick(g, b.vars)
	op := pick(g, []string{"=", "!=", "<", "<=", ">", ">="})
	right := pick(g, b.bound(v.kind))
	g.tag("comparison")
	switch {
	case v.kind == value.Int && g.in(4) && !b.recursive && !g.foreign:
		g.tag("expression in a comparison")
		b.add("%s * 2 %s %s + 1", v.name, op, right)
		return
	case v.nullable && g.in(2):
		g.tag("comparison with null")
		right = "null"
		if op == "=" {
			op = "<=" // the same; = is refused if analysis finds that it never holds
		}
	case right == v.name || g.in(2):
		right = b.constant(column{kind: v.kind})
	}
	if op == "=" {
		g.tag("equality")
	}
	b.add("%s %s %s", v.name, op, right)
}

// expression is what a computation computes: {i} stands for a bound int or an int
// constant, and so on by the first letters of the kinds.
type expression struct {
	kind value.Kind
	text string
	// nullable ones may give null for arguments that are not.
	nullable bool
	tag      string
}

var expressions = []expression{
	{value.Int, "{i} + {i}", false, "addition"},
	{value.Int, "{i} + {i}", false, "addition"},
	{value.Int, "{i} - {i}", false, "subtraction"},
	{value.Int, "{i} * {i}", false, "multiplication"},
	{value.Int, "{i} / {i}", false, "division"},
	{value.Int, "{i} / {i}", false, "division"},
	{value.Int, "{i} % {i}", false, "remainder"},
	{value.Int, "({i} + {i}) * {i} - {i}", false, "nested expression"},
	{value.Int, "{i} / ({i} - {i})", false, "nested expression"},
	{value.Int, "len({s})", false, "string function"},
	{value.Int, "abs({i})", false, "mathematical function"},
	{value.Int, "max_val({i}, {i})", false, "mathematical function"},
	{value.Int, "sign({i})", false, "mathematical function"},
	{value.Int, "{t} - {t}", false, "temporal function"},
	{value.Int, "time_diff({t}, {t})", false, "temporal function"},
	{value.Int, "second({t})", false, "temporal function"},
	{value.Float, "{f} + {i}", false, "promotion"},
	{value.Float, "{i} * {f}", false, "promotion"},
	{value.Float, "{f} / {f}", false, "float arithmetic"},
	{value.Float, "{f} - {f}", false, "float arithmetic"},
	{value.Float, "({f} + {i}) * {f}", false, "float arithmetic"},
	{value.Float, "to_float({i})", false, "mathematical function"},
	{value.Float, "sqrt({f})", true, "nullable function"},
	{value.Float, "log(to_float({i}))", true, "nullable function"},
	{value.String, "concat({s}, {s})", false, "string function"},
	{value.String, "upper({s})", false, "string function"},
	{value.String, "substr({s}, 0, {i})", false, "string function"},
	{value.String, "replace({s}, \"a\", {s})", false, "string function"},
	{value.String, "to_string({i})", false, "string function"},
	{value.Timestamp, "{t} + {i}", false, "temporal function"},
	{value.Timestamp, "time_add({t}, {i})", false, "temporal function"},
	{value.Timestamp, "{t} - {i}", false, "temporal function"},
	{value.Bool, "time_before({t}, {t})", false, "temporal function"},
	{value.Bool, "starts_with({s}, {s})", false, "string function"},
}

var letters = map[string]value.Kind{
	"{i}": value.Int, "{f}": value.Float, "{s}": value.String, "{t}": value.Timestamp,
}

// fill replaces the places of an expression by bound variables, and here and there
// by a constant. It returns false if none of a kind is bound. What it returns is
// nullable if a variable in it is.
func (b *body) fill(e expression) (text string, nullable, ok bool) {
	text, nullable, variables := e.text, e.nullable, 0
	for {
		at := strings.Index(text, "{")
		if at < 0 {
			return text, nullable, variables > 0
		}
		kind := letters[text[at:at+3]]
		bound := b.arguments(kind)
		var with string
		if len(bound) == 0 && variables == 0 {
			return "", false, false
		}
		if len(bound) == 0 || variables > 0 && b.g.in(3) {
			with = b.constant(column{kind: kind})
		} else {
			with = pick(b.g, bound)
			variables++
			for _, v := range b.vars {
				nullable = nullable || v.name == with && v.nullable
			}
		}
		text = text[:at] + with + text[at+3:]
	}
}

// arguments returns the variables of a kind that may be computed with.
func (b *body) arguments(kind value.Kind) []string {
	if !b.g.foreign {
		return b.bound(kind)
	}
	var out []string
	for _, v := range b.vars {
		if v.kind == kind && !v.nullable {
			out = append(out, v.name)
		}
	}
	return out
}

// foreignExpressions are those that mean the same to clingo, and stay small.
var foreignExpressions = []expression{
	{value.Int, "{i} + {i}", false, "addition"},
	{value.Int, "{i} - {i}", false, "subtraction"},
	{value.Int, "{i} * 2", false, "multiplication"},
}

// computation adds a computation, of a new variable or as a test of a bound one.
func (b *body) computation() {
	g := b.g
	from := expressions
	if g.foreign {
		from = foreignExpressions
	}
	for range 20 {
		e := pick(g, from)
		if b.recursive && e.kind != value.Int {
			continue
		}
		text, nullable, ok := b.fill(e)
		if !ok {
			continue
		}
		g.tag(e.tag)
		g.tag("computation")
		// Analysis takes a test of what an atom binds for a computation of it, which may
		// then grow without end.
		if old := b.bound(e.kind); len(old) > 0 && !b.recursive && g.in(6) {
			g.tag("computation as a test")
			b.add("%s = %s", pick(g, old), text)
			return
		}
		name := b.bind(e.kind, nullable)
		b.vars[len(b.vars)-1].computed = true
		b.computed = append(b.computed, name)
		b.add("%s = %s", name, text)
		if b.recursive {
			g.tag("recursion through a computation")
			b.add("%s >= -3", name)
			b.add("%s <= 5", name)
		}
		return
	}
}

// useComputed adds a literal of the stage after a computation.
func (b *body) useComputed(from, below []*relation) {
	g := b.g
	name := pick(g, b.computed)
	v := slices.IndexFunc(b.vars, func(v variable) bool { return v.name == name })
	kind := b.vars[v].kind
	negated := g.in(3)
	if negated || !b.recursive { // what it computed before has no bounds
		from = below
	}
	for range 10 {
		r := pick(g, from)
		at := slices.IndexFunc(r.columns, func(c column) bool { return c.kind == kind })
		if at < 0 {
			continue
		}
		terms := make([]string, len(r.columns))
		for i, c := range r.columns {
			switch old := b.old(c.kind); {
			case i == at:
				terms[i] = name
				b.vars[v].nullable = b.vars[v].nullable || c.nullable
			case negated && len(old) == 0:
				terms[i] = "_"
			case len(old) > 0 && g.in(2):
				if terms[i] = pick(g, old); !negated {
					b.meets(terms[i], c)
				}
			case negated:
				terms[i] = "_"
			default:
				terms[i] = b.bind(c.kind, c.nullable)
			}
		}
		text := r.name + "(" + strings.Join(terms, ", ") + ")"
		if negated {
			g.tag("negation of what is computed")
			text = "!" + text
		} else {
			g.tag("join with what is computed")
		}
		b.literals = append(b.literals, text)
		return
	}
}

// headTerm returns what stands in a column of the head.
func (b *body) headTerm(c column) string {
	g := b.g
	var fit []string
	for _, v := range b.vars {
		if v.kind == c.kind && (c.nullable || !v.nullable) {
			fit = append(fit, v.name)
		}
	}
	switch {
	case len(fit) == 0 || g.in(12):
		return b.constant(column{kind: c.kind})
	case c.kind == value.Int && !b.recursive && g.in(10) && !g.foreign:
		g.tag("expression in a head")
		return pick(g, fit) + " + 1"
	}
	return pick(g, fit)
}

// aggregates returns the aggregates that fit a column, of those with one result or
// of those with several.
func (b *body) aggregates(c column, several bool) []string {
	g := b.g
	var out []string
	for _, v := range b.vars {
		fits := v.kind == c.kind && (c.nullable || !v.nullable)
		ordered := v.kind != value.Bool && v.kind != value.Bytes
		threshold := b.constant(column{kind: v.kind})
		descending := pick(g, []string{"", ", desc"})
		switch {
		case several && fits && ordered:
			out = append(out,
				fmt.Sprintf("top_k<%d, %s%s>", 1+g.IntN(3), v.name, descending),
				fmt.Sprintf("top_k_threshold<%d, %s, %s%s>", 1+g.IntN(3), threshold, v.name, descending),
			)
			if v.kind == value.Int || v.kind == value.Float {
				out = append(out, fmt.Sprintf("within_radius< %s, %s>", threshold, v.name))
			}
		case several:
		case fits:
			out = append(out, "min<"+v.name+">", "max<"+v.name+">")
			if v.kind == value.Int || v.kind == value.Float {
				out = append(out, "sum<"+v.name+">", "sum<"+v.name+">", "sum<"+v.name+" * 2>")
			}
		}
		if several {
			continue
		}
		if c.kind == value.Int {
			out = append(out, "count<"+v.name+">", "count_distinct<"+v.name+">", "count<1>")
		}
		if c.kind == value.Float && (v.kind == value.Int || v.kind == value.Float) &&
			(c.nullable || !v.nullable) {
			out = append(out, "avg<"+v.name+">", "avg<"+v.name+">")
		}
	}
	return out
}
