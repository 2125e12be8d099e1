package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

var (
	bareName   = regexp.MustCompile(`^([a-z][A-Za-z0-9_]*)\s*(\(\s*\))?$`)
	namedPart  = regexp.MustCompile(`\)\s*\.\s*([a-z][A-Za-z0-9_]*)$`)
	nameBefore = regexp.MustCompile(`^[a-z][A-Za-z0-9_]*`)
)

// rows reads what rows are expected.
func (r *reader) rows(d *directive, f fragment, none bool, s *step) bool {
	s.verb = expectRows
	columns, name := []analysis.Column(nil), ""
	if strings.HasPrefix(f.text, "?") {
		tree, err := parse.Query(f.text)
		if r.failed(&f, err) {
			return false
		}
		q, err := analysis.AnalyseQuery(r.program, tree)
		if r.failed(&f, err) {
			return false
		}
		if len(q.Parameters) > 0 {
			r.fail(f.start(), "write the value in its place", "the query has the parameter $%s",
				q.Parameters[0].Name)
			return false
		}
		s.target = target{query: q, name: f.text}
		columns, name = q.Columns, tree.Goal.Relation.Text
	} else {
		if !r.key(&f, true, &s.target) {
			return false
		}
		columns, name = r.columns(&s.target), s.target.view
	}
	return r.expectedRows(d, none, false, name, columns, s)
}

// changes reads what changes are expected.
func (r *reader) changes(d *directive, f fragment, none bool, s *step) bool {
	s.verb = expectChanges
	if strings.HasPrefix(f.text, "?") {
		r.fail(f.start(), "watch a view, and expect its changes", "a query is not watched")
		return false
	}
	if !r.key(&f, true, &s.target) || !r.isWatched(d, s) {
		return false
	}
	return r.expectedRows(d, none, true, s.target.view, r.columns(&s.target), s)
}

func (r *reader) columns(t *target) []analysis.Column {
	return r.program.ViewNamed(t.view).Parts[t.part].Query.Columns
}

// expectedRows reads the rows of the directive's block.
func (r *reader) expectedRows(d *directive, none, signed bool, name string,
	columns []analysis.Column, s *step,
) bool {
	groups := d.block.groups()
	what := "rows"
	if signed {
		what = "changes"
	}
	switch {
	case none:
		return r.noBlock(d)
	case len(groups) == 0 && s.doubt == engine.Exact:
		r.fail(d.rest.start(), "to expect none, write: expect no "+what+" "+s.target.name,
			"the %s are missing that should stand, indented, in the next lines", what)
		return false
	}
	ok := true
	for i := range groups {
		ok = r.expectedRow(&groups[i], signed, name, columns, s) && ok
	}
	return ok
}

func (r *reader) expectedRow(f *fragment, signed bool, name string, columns []analysis.Column,
	s *step,
) bool {
	var next row
	from := 0
	example := row{cells: exampleCells(columns)}.String()
	if signed {
		if f.text[0] != '+' && f.text[0] != '-' {
			r.fail(f.start(), "+ "+example+" enters, - "+example+" leaves",
				"a change begins with + or -")
			return false
		}
		next.sign = f.text[0]
		from = 1 + len(f.text[1:]) - len(strings.TrimLeft(f.text[1:], " \t"))
	}
	if from >= len(f.text) || f.text[from] != '(' {
		r.fail(f.start(), "for example: "+example, "a row stands in parentheses")
		return false
	}
	tuple := f.slice(from, "")
	tuple.cut = append(tuple.cut, f.cut[1:]...)
	cells, ok := r.tuple(&tuple, name, "column", columns)
	if !ok {
		return false
	}
	next.cells = cells
	same := func(o row) bool { return o.sign == next.sign && slices.Equal(o.cells, next.cells) }
	if slices.ContainsFunc(s.rows, same) {
		r.fail(f.start(), "", "this row stands there twice")
		return false
	}
	s.rows = append(s.rows, next)
	return true
}

func exampleCells(columns []analysis.Column) []value.Value {
	half, _ := value.OfFloat(0.5)
	examples := map[value.Kind]value.Value{
		value.Int: value.OfInt(7), value.Float: half, value.String: value.OfString("text"),
		value.Bool: value.OfBool(true), value.Bytes: value.OfBytes("\x00"),
		value.Timestamp: value.OfTimestamp(0),
	}
	cells := make([]value.Value, len(columns))
	for i, c := range columns {
		cells[i] = examples[c.Type]
	}
	return cells
}

// tuple reads values in parentheses as a row of columns, which people call what.
func (r *reader) tuple(f *fragment, name, what string, columns []analysis.Column) (
	[]value.Value, bool,
) {
	fact := fragment{text: "+" + name + f.text, line: f.line, cut: slices.Clone(f.cut)}
	fact.cut[0] -= len(name) + 1
	tree, err := parse.Transaction(fact.text)
	if r.failed(&fact, err) {
		return nil, false
	}
	if only := tree.Statements; len(only) != 1 || only[0].Heads != nil ||
		len(only[0].Facts.Rows) != 1 {
		r.fail(f.start(), "a string stands in quotes", "a row has values only")
		return nil, false
	}
	// The columns as a relation: what does not fit is told as it is of facts.
	as := &analysis.Program{Relations: []analysis.Relation{{Name: name, Columns: columns}}}
	statements, err := analysis.CheckTransaction(as, tree)
	if r.failedAs(&fact, err, what) {
		return nil, false
	}
	return statements[0].Ops[0].Row, true
}

// applied reads NAME(VALUE, …): the name, and the fragment with the values, whose
// text is "" without any.
func (r *reader) applied(f *fragment, form string) (name string, values fragment, ok bool) {
	if m := bareName.FindStringSubmatch(f.text); m != nil {
		return m[1], fragment{line: f.line, cut: f.cut}, true
	}
	name = nameBefore.FindString(f.text)
	from := len(name) + len(f.text[len(name):]) - len(strings.TrimLeft(f.text[len(name):], " \t"))
	if name == "" || f.text[from] != '(' {
		r.fail(f.start(), "for example: tour_of(7), mine(\"ann\", 3)", "expected %s", form)
		return "", fragment{}, false
	}
	return name, f.slice(from, ""), true
}

// typed reads values as a row of an action's or view's parameters.
func (r *reader) typed(f fragment, name string, columns []analysis.Column) ([]value.Value, bool) {
	if f.text == "" && len(columns) == 0 {
		return nil, true
	}
	if f.text == "" || len(columns) == 0 {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.Name + ": " + c.Type.String()
		}
		r.fail(f.start(), fmt.Sprintf("it is %s(%s)", name, strings.Join(names, ", ")),
			"%s has %s", name, counted(len(columns), "parameter"))
		return nil, false
	}
	return r.tuple(&f, name, "parameter", columns)
}

// key reads a view at a key; with a part, also the name of one if the view has named
// parts.
func (r *reader) key(f *fragment, withPart bool, t *target) bool {
	at, part := *f, ""
	if m := namedPart.FindStringSubmatchIndex(f.text); m != nil {
		part = f.text[m[2]:m[3]]
		at.text = f.text[:m[0]+1]
	}
	name, values, ok := r.applied(&at, "VIEW(VALUE, …)")
	if !ok {
		return false
	}
	view := r.program.ViewNamed(name)
	if view == nil {
		r.fail(f.start(), r.known("view"), "there is no view %s", name)
		return false
	}
	t.view = name
	if t.key, ok = r.typed(values, name, view.Parameters); !ok {
		return false
	}
	t.name = t.id()
	if part != "" {
		t.name += "." + part
	}
	if !withPart {
		if part != "" {
			r.fail(f.start(), "", "a key is watched with all its parts")
		}
		return part == ""
	}
	t.part = slices.IndexFunc(view.Parts, func(p analysis.Part) bool { return p.Name == part })
	if t.part < 0 {
		r.noSuchPart(f, view, t, part)
	}
	return t.part >= 0
}

func (r *reader) noSuchPart(f *fragment, view *analysis.View, t *target, part string) {
	if view.Parts[0].Name == "" {
		r.fail(f.start(), "write "+t.id(), "view %s has no named parts", view.Name)
		return
	}
	forms := make([]string, len(view.Parts))
	for i, p := range view.Parts {
		forms[i] = t.id() + "." + p.Name
	}
	hint := "write " + strings.Join(forms, " or ")
	if part != "" {
		r.fail(f.start(), hint, "view %s has no part %s", view.Name, part)
		return
	}
	r.fail(f.start(), hint, "view %s has several parts", view.Name)
}

// known is a hint that lists what the program has.
func (r *reader) known(what string) string {
	var names []string
	if what == "view" {
		for i := range r.program.Views {
			names = append(names, r.program.Views[i].Name)
		}
	} else {
		for i := range r.program.Actions {
			names = append(names, r.program.Actions[i].Name)
		}
	}
	if len(names) == 0 {
		return "the program has no " + what
	}
	return "the " + what + "s are " + strings.Join(names, ", ")
}
