package analysis_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// TestLanguagePage runs docs/rules/language.md: programs must be accepted,
// transactions and calls of actions after a program are carried out, the table after a
// query must be its answer, and what is refused must be so in the words that follow.
func TestLanguagePage(t *testing.T) {
	data, err := os.ReadFile("../../docs/rules/language.md")
	if err != nil {
		t.Fatal(err)
	}
	page := &page{lines: strings.Split(string(data), "\n")}
	examples := 0
	for page.at < len(page.lines) {
		line := page.lines[page.at]
		page.at++
		kind, ok := strings.CutPrefix(line, "```")
		if !ok {
			continue
		}
		number := page.at
		src := page.block()
		examples++
		if err := page.example(t, kind, src); err != nil {
			t.Errorf("example in line %d: %v", number, err)
		}
	}
	if examples < 15 {
		t.Errorf("only %d examples were found", examples)
	}
}

// page is the text under test and the program that stands last in it.
type page struct {
	lines   []string
	at      int
	program *analysis.Program
	facts   naive.Facts
}

// block returns the lines up to the closing fence.
func (p *page) block() string {
	start := p.at
	for p.lines[p.at] != "```" {
		p.at++
	}
	p.at++
	return strings.Join(p.lines[start:p.at-1], "\n")
}

func (p *page) example(t *testing.T, kind, src string) error {
	words := strings.Fields(kind)
	switch words[0] {
	case "heddle":
		return p.apply(src)
	case "transaction":
		return p.write(src)
	case "call":
		return p.call(src)
	case "query":
		return p.ask(src, words[1:])
	case "refused":
		err := p.run(words[1], src)
		p.at++ // the blank line
		if p.lines[p.at] != "```text" {
			return errors.New("no error text follows")
		}
		p.at++
		want := p.block()
		errs, ok := errors.AsType[parse.Errors](err)
		if !ok {
			return errors.New("it was accepted")
		}
		if errs.Detail() != want {
			return errors.New("the error is\n" + errs.Detail())
		}
		return nil
	}
	t.Errorf("no kind of example is called %q", kind)
	return nil
}

func (p *page) run(kind, src string) error {
	switch kind {
	case "program":
		return (&page{}).apply(src)
	case "transaction":
		return p.write(src)
	}
	return p.ask(src, nil)
}

func (p *page) apply(src string) error {
	file, err := parse.Program(src)
	if err != nil {
		return err
	}
	if p.program, err = analysis.Analyse(file, src); err != nil {
		return err
	}
	p.facts = naive.Facts{}
	for _, f := range p.program.Seed {
		if p.facts[f.Relation] == nil {
			p.facts[f.Relation] = naive.Set{}
		}
		p.facts[f.Relation].Add(f.Row)
	}
	return nil
}

func (p *page) write(src string) error {
	tree, err := parse.Transaction(src)
	if err != nil {
		return err
	}
	statements, err := analysis.CheckTransaction(p.program, tree)
	if err != nil {
		return err
	}
	return p.transact(statements, nil)
}

// call takes a path /v1/graphs/{graph}/actions/{action}/{key}.
func (p *page) call(src string) error {
	_, path, _ := strings.Cut(src, "/actions/")
	name, key, _ := strings.Cut(path, "/")
	action := p.program.ActionNamed(name)
	if action == nil {
		return errors.New("there is no action " + name)
	}
	var values []value.Value
	for word := range strings.SplitSeq(key, "/") {
		values = append(values, valueOf(word))
	}
	return p.transact(action.Statements, values)
}

func (p *page) transact(statements []analysis.Statement, values []value.Value) error {
	facts, _, err := naive.Transact(p.program, p.facts, statements, values)
	if err == nil {
		p.facts = facts
	}
	return err
}

// valueOf returns an int for what looks like one, else a string.
func valueOf(text string) value.Value {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value.OfInt(i)
	}
	return value.OfString(strings.Trim(text, `"`))
}

// ask compares a query's answer with the table that follows. Parameters are
// words name="value".
func (p *page) ask(src string, parameters []string) error {
	tree, err := parse.Query(src)
	if err != nil {
		return err
	}
	q, err := analysis.AnalyseQuery(p.program, tree)
	if err != nil {
		return err
	}
	var values []value.Value
	for _, word := range parameters {
		_, text, _ := strings.Cut(word, "=")
		values = append(values, valueOf(text))
	}
	var rows []string
	answer, _ := naive.Derive(p.program, p.facts).InOrder(q, values)
	for _, row := range answer {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = v.String()
			if v.Kind() == value.String {
				cells[i] = v.Str()
			}
		}
		rows = append(rows, "| "+strings.Join(cells, " | ")+" |")
	}
	p.at += 3 // a blank line, the names of the columns and the line below
	for _, row := range rows {
		if p.lines[p.at] != row {
			return errors.New("the answer is\n" + strings.Join(rows, "\n"))
		}
		p.at++
	}
	if p.lines[p.at] != "" {
		return errors.New("the answer has fewer rows")
	}
	names := make([]string, len(q.Columns))
	for i, c := range q.Columns {
		names[i] = c.Name
	}
	if want := "| " + strings.Join(names, " | ") + " |"; p.lines[p.at-len(rows)-2] != want {
		return errors.New("the columns are " + want)
	}
	return nil
}
