package parse

import (
	"strings"
	"testing"
)

// programs are texts with their one spelling.
var programs = []struct{ name, src, want string }{
	{"empty", "", ""},
	{"comments", "// one\n% two\n/* three /* nested */\n still */\n", ""},
	{"schema", "+edge( src:int,dst : int )", "+edge(src: int, dst: int)"},
	{
		"schema of every type", "+t(a: int, b: float, c: string, d: bool).",
		"+t(a: int, b: float, c: string, d: bool)",
	},
	{"renamed", "+b(x:int)  was\n  a. +was(was: int) was was", "+b(x: int) was a\n+was(was: int) was was"},
	{"rule", `r1(X,Y)<-edge(X,Y),label(X,"hot").`, `r1(X, Y) <- edge(X, Y), label(X, "hot")`},
	{
		"comparisons", "r(X) <- e(X, Y, Z), X=Y, X!=1, Y<2, Y<=-3, Z>4.5, Z>=-6.25e-3",
		"r(X) <- e(X, Y, Z), X = Y, X != 1, Y < 2, Y <= -3, Z > 4.5, Z >= -0.00625",
	},
	{"comparison that looks like an arrow", "r(X) <- e(X), X < -1", "r(X) <- e(X), X < -1"},
	{
		"constants", `r(1,"a",true,2.0)<-e(_,false,_x,X_1)`,
		`r(1, "a", true, 2.0) <- e(_, false, _x, X_1)`,
	},
	{"least int", "r(-9223372036854775808) <- e(_)", "r(-9223372036854775808) <- e(_)"},
	{
		"continued by white space", "r(X)\n <- e(X)\n\t, f(X)\n\n // note\ns(X) <- r(X)",
		"r(X) <- e(X), f(X)\ns(X) <- r(X)",
	},
	{
		"continued by an arrow", "r(X) <-\ne(X),\nf(X)\ns(X) <- r(X)",
		"r(X) <- e(X), f(X)\ns(X) <- r(X)",
	},
	{
		"continued by a bracket", "+edge(\nsrc: int,\ndst: int\n)\nr(X) <- edge(\nX,\n_)",
		"+edge(src: int, dst: int)\nr(X) <- edge(X, _)",
	},
	{
		"comment before column 1", "/* a */ r(X) <- e(X)\n/* b */ s(X) <- r(X)",
		"r(X) <- e(X)\ns(X) <- r(X)",
	},
	{
		"points", "r(X) <- e(X). s(X) <- r(X).\nt(X) <- s(X).",
		"r(X) <- e(X)\ns(X) <- r(X)\nt(X) <- s(X)",
	},
	{"point after an int", "r(X) <- e(X), X > 1.\ns(X) <- r(X)", "r(X) <- e(X), X > 1\ns(X) <- r(X)"},
	{
		"view", "view hot($head:int,$min:int):=?r1($head,Y),Y>$min",
		"view hot($head: int, $min: int) := ?r1($head, Y), Y > $min",
	},
	{
		"view on two lines", "view hot($head: int) :=\n?r1($head, Y)",
		"view hot($head: int) := ?r1($head, Y)",
	},
	{"seed", "seed +edge(1, 2)", "seed +edge(1, 2)"},
	{"seed of many", "seed +edge[(1, 2),\n(2, 3),\n]", "seed +edge[(1, 2), (2, 3)]"},
	{
		"keywords name relations", "view(X) <- seed(X), limits(X)\nseed(X) <- view(X)",
		"view(X) <- seed(X), limits(X)\nseed(X) <- view(X)",
	},
	{
		"windows lines and byte order mark", "\ufeff+e(a: int)\r\nr(X) <- e(X)\r\n",
		"+e(a: int)\nr(X) <- e(X)",
	},
	{"escapes", `r("\"\\\n\t\r\u00e9\ud83d\ude00é") <- e(_)`, `r("\"\\\n\t\ré😀é") <- e(_)`},
	{"negation", "r(X)<-e(X),!f(X,_), ! not(X)", "r(X) <- e(X), !f(X, _), !not(X)"},
	{
		"arithmetic", "r(X+1)<-e(X,Y-1),Z=(X+Y)*2-(3-X)/-Y%5,Z - -1>-X, ((X))=-1",
		"r(X + 1) <- e(X, Y - 1), Z = (X + Y) * 2 - (3 - X) / (0 - Y) % 5, Z - -1 > 0 - X, X = -1",
	},
	{
		"left to right", "r(X) <- e(X), X = 1 - 2 - 3, X = 1 - (2 - 3), X = 8 / 2 / 2, X = 2 * (3 / 4)",
		"r(X) <- e(X), X = 1 - 2 - 3, X = 1 - (2 - 3), X = 8 / 2 / 2, X = 2 * (3 / 4)",
	},
	{
		"functions", `r(upper(N)) <- e(N), len(N) + 1 > len("a"), concat(N, "b", f()) = N, e(len(N))`,
		`r(upper(N)) <- e(N), len(N) + 1 > len("a"), concat(N, "b", f()) = N, e(len(N))`,
	},
	{
		"aggregates", "r(X,count<Y>,sum<Y*2>)<-e(X,Y)\ns(top_k<3,Y,desc>)<-e(_,Y)\n" +
			"t(top_k_threshold<3,-1.5,Y,asc>)<-e(_,Y)\nu(within_radius<2,Y-1>)<-e(_,Y)",
		"r(X, count<Y>, sum<Y * 2>) <- e(X, Y)\ns(top_k<3, Y, desc>) <- e(_, Y)\n" +
			"t(top_k_threshold<3, -1.5, Y>) <- e(_, Y)\nu(within_radius<2, Y - 1>) <- e(_, Y)",
	},
	{
		"names that are words elsewhere", "count(X) <- sum(X), order(X), limit(5), !in1(X), noto(X), " +
			"clock(X), action(X), every(X), not(X)\nclock(X) <- action(X)\naction(X) <- by(X)",
		"count(X) <- sum(X), order(X), limit(5), !in1(X), noto(X), clock(X), action(X), every(X), " +
			"not(X)\nclock(X) <- action(X)\naction(X) <- by(X)",
	},
	{
		"null", `r(x"00Ff", t"2026-11-30T13:00:00.5+01:00", null) <- e(x""), null = X, X != null`,
		`r(x"00ff", t"2026-11-30T12:00:00.5Z", null) <- e(x""), null = X, X != null`,
	},
	{"nullable columns", "+e(a:int?,b : timestamp ?, c: bytes)", "+e(a: int?, b: timestamp?, c: bytes)"},
	{"clock", "clock every 90m.", "clock every 5400s"},
	{"clock in milliseconds", "clock every 1500ms", "clock every 1500ms"},
	{
		"view of parts", "view v($a:int):=orders:?o($a,X),X>1 order by X:desc limit 5,\n alerts :?b($a)" +
			",\n  c: ? d(X:asc, Y:desc), e(Y) limit 7 offset 2",
		"view v($a: int) := orders: ?o($a, X), X > 1 order by X desc limit 5, alerts: ?b($a), " +
			"c: ?d(X, Y), e(Y) order by X, Y desc limit 7 offset 2",
	},
	{
		"action", "action claim($u:string,$t:int):=-ghost(0),+claim($t,$u)<-task($t),!claim($t,_);\n" +
			"+done[($t,1),(2,$t+1)];\n-open($t)",
		"action claim($u: string, $t: int) := -ghost(0), +claim($t, $u) <- task($t), !claim($t, _); " +
			"+done($t, 1), +done(2, $t + 1); -open($t)",
	},
	{"action without parameters", "action clear() := -e(X) <- e(X);", "action clear() := -e(X) <- e(X)"},
	{"comment signs in strings", `r("// % /*") <- e(_)`, `r("// % /*") <- e(_)`},
}

func TestPrograms(t *testing.T) {
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			f, err := Program(c.src)
			if err != nil {
				t.Fatal(err.(Errors).Detail())
			}
			if got := f.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestTransactions(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"insert", "+edge(1, 2)", "+edge(1, 2)"},
		{"delete", "-edge(1, 2).", "-edge(1, 2)"},
		{"in order", "+edge(1, 2)\n-edge(1, 2)\n+edge(1, 2)", "+edge(1, 2)\n-edge(1, 2)\n+edge(1, 2)"},
		{"bulk", "+edge[(1, 2), (2, 3)]\n-edge[(-1, 2)]", "+edge[(1, 2), (2, 3)]\n-edge(-1, 2)"},
		{"one line", "+edge(1, 2). -edge(2, 3).", "+edge(1, 2)\n-edge(2, 3)"},
		{"every type", `+t("a", -1, 1.5, true)`, `+t("a", -1, 1.5, true)`},
		{"indented", "  +edge(1, 2)", "+edge(1, 2)"},
		{"delete under a condition", "-e(X,Y)<-e(X,Y),Y<1.", "-e(X, Y) <- e(X, Y), Y < 1"},
		{
			"update", "-p(S,P),\n  +p(S,P+1) <- p(S, P)\n+p(1, 2)",
			"-p(S, P), +p(S, P + 1) <- p(S, P)\n+p(1, 2)",
		},
		{"guarded insert", "+c(T, 1) <- t(T), !c(T, _)", "+c(T, 1) <- t(T), !c(T, _)"},
		{
			"a line a tuple", "+edge[\n(1, 2),\n(2, 3)\n]\n+edge(3, 4)",
			"+edge[(1, 2), (2, 3)]\n+edge(3, 4)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx, err := Transaction(c.src)
			if err != nil {
				t.Fatal(err.(Errors).Detail())
			}
			if got := tx.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestQueries(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"goal", "?r1(400,Y)", "?r1(400, Y)"},
		{"conditions", "? r1(400, Y), Y > 7, label(Y, _).", "?r1(400, Y), Y > 7, label(Y, _)"},
		{"parameters", "?r1($k, Y), Y > $min", "?r1($k, Y), Y > $min"},
		{
			"order and limit", "?r(X,Y),Y>1 order by Y desc,X asc limit 50 offset 10",
			"?r(X, Y), Y > 1 order by Y desc, X limit 50 offset 10",
		},
		{"order in the goal", "?r(X:desc, Y), limit(5)", "?r(X, Y), limit(5) order by X desc"},
		{"limit alone", "?order(X, Y) limit 5", "?order(X, Y) limit 5"},
		{"lines", "?r1(400, Y),\nY > 7\n  , label(Y, _)", "?r1(400, Y), Y > 7, label(Y, _)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := Query(c.src)
			if err != nil {
				t.Fatal(err.(Errors).Detail())
			}
			if got := q.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	f, err := Program("// é\n+edge(src: int)\nr(\"é\", X) <-\n   edge(X), X > -5")
	if err != nil {
		t.Fatal(err)
	}
	r := f.Rules[0]
	for _, c := range []struct {
		name string
		got  Position
		want Position
	}{
		{"schema", f.Schemas[0].Pos, Position{2, 1}},
		{"column", f.Schemas[0].Columns[0].Name.Pos, Position{2, 7}},
		{"head", r.Head.Relation.Pos, Position{3, 1}},
		{"term after a wide letter", r.Head.Terms[1].Pos, Position{3, 8}},
		{"atom", r.Body[0].Atom.Relation.Pos, Position{4, 4}},
		{"operator", r.Body[1].Comparison.Pos, Position{4, 15}},
		{"negative number", r.Body[1].Comparison.Right.Pos, Position{4, 17}},
	} {
		if c.got != c.want {
			t.Errorf("%s at %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	repeat := func(s string, n int) string {
		return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ")
	}
	fits := []struct{ name, src string }{
		{"columns", "+e(" + repeat("a: int", ColumnsMax) + ")"},
		{"atoms", "r(X) <- " + repeat("e(X)", AtomsMax)},
		{"comparisons", "r(X) <- e(X), " + repeat("X > 1", ComparisonsMax)},
		{"name", strings.Repeat("n", NameBytesMax) + "(X) <- e(X)"},
		{"statements", strings.Repeat("r(X) <- e(X)\n", StatementsMax)},
		{"tuples", "seed +e[" + repeat("(1)", TuplesMax) + "]"},
	}
	for _, c := range fits {
		if _, err := Program(c.src); err != nil {
			t.Errorf("%s at the limit: %v", c.name, err)
		}
	}
	exceeds := []struct{ name, src, want string }{
		{"columns", "+e(" + repeat("a: int", ColumnsMax+1) + ")", "more than the 32 columns"},
		{"arguments", "r(X) <- e(" + repeat("X", ColumnsMax+1) + ")", "more than the 32 columns"},
		{"values", "seed +e(" + repeat("1", ColumnsMax+1) + ")", "more than the 32 columns"},
		{"atoms", "r(X) <- " + repeat("e(X)", AtomsMax+1), "more than the 32 atoms"},
		{
			"comparisons", "r(X) <- e(X), " + repeat("X > 1", ComparisonsMax+1),
			"more than the 64 comparisons",
		},
		{"name", strings.Repeat("n", NameBytesMax+1) + "(X) <- e(X)", "has 65 characters"},
		{
			"statements", strings.Repeat("r(X) <- e(X)\n", StatementsMax+1),
			"more than the 10000 statements",
		},
		{"tuples", "seed +e[" + repeat("(1)", TuplesMax+1) + "]", "more than the 100000 facts"},
		{"bytes", strings.Repeat(" ", SourceBytesMax+1), "has 1048577 bytes"},
	}
	for _, c := range exceeds {
		if _, err := Program(c.src); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s beyond the limit: %v, want %q", c.name, err, c.want)
		}
	}
	_, err := Program(strings.Repeat("#\n", 1000))
	if errs := err.(Errors); len(errs) != errorsMax {
		t.Errorf("%d errors of a text full of them, want %d", len(errs), errorsMax)
	}
}
