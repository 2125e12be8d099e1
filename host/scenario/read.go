package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// Read reads a file of scenarios and checks them against a program. The error is of
// type parse.Errors.
func Read(program *analysis.Program, src string) (*File, error) {
	r := &reader{program: program, src: src}
	start := parse.Position{Line: 1, Column: 1}
	if len(src) > sourceBytesMax {
		return nil, parse.Errors{parse.NewError("", start, "part it into several files",
			fmt.Sprintf("the file has %d bytes, more than the %d allowed",
				len(src), sourceBytesMax))}
	}
	directives, fault := splitDirectives(src)
	if fault != nil {
		return nil, parse.Errors{fault}
	}
	for i := range directives {
		if r.errs.Full() {
			break
		}
		r.directive(&directives[i])
	}
	if len(r.errs) == 0 && len(r.file.Tests) == 0 {
		r.fail(start, "a scenario begins like: test a parcel moves", "the file has no scenario")
	}
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return &r.file, nil
}

// reader reads one file.
type reader struct {
	program *analysis.Program
	src     string
	file    File
	errs    parse.Errors

	before []step // in front of the first test: every test begins with them
	bare   bool   // those before begin with "given no seed"
}

func (r *reader) fail(at parse.Position, hint, format string, args ...any) {
	r.errs.Add(parse.NewError(r.src, at, hint, fmt.Sprintf(format, args...)))
}

// failed takes over the errors of another parser, and reports whether there was one.
func (r *reader) failed(f *fragment, err error) bool { return r.failedAs(f, err, "column") }

// failedAs is failed with another word for what the other parser calls a column.
func (r *reader) failedAs(f *fragment, err error, column string) bool {
	list, ok := errors.AsType[parse.Errors](err)
	if err != nil && !ok {
		panic("scenario: a parser returns another error than parse.Errors")
	}
	for _, e := range list {
		message := strings.Replace(e.Message, "column", column, 1)
		hint := strings.Replace(e.Hint, "in the first column", "where the lines above begin", 1)
		r.errs.Add(parse.NewError(r.src, f.position(e.Position), hint, message))
	}
	return err != nil
}

// steps returns the list to which the next step belongs.
func (r *reader) steps() *[]step {
	if n := len(r.file.Tests); n > 0 {
		return &r.file.Tests[n-1].steps
	}
	return &r.before
}

// directive reads one directive.
func (r *reader) directive(d *directive) {
	s := step{line: d.line, text: d.text}
	ok := true
	switch d.word {
	case "test":
		r.test(d)
		return
	case "given":
		if d.rest.text == "no seed" {
			r.noSeed(d)
			return
		}
		s.verb, ok = given, r.transaction(d, &s)
	case "write":
		s.verb, ok = write, r.transaction(d, &s)
	case "call":
		s.verb, ok = call, r.call(d, &s) && r.noBlock(d)
	case "watch":
		s.verb, ok = watch, r.watch(d, &s) && r.noBlock(d)
	case "unwatch":
		s.verb, ok = unwatch, r.key(&d.rest, false, &s.target) && r.isWatched(d, &s) && r.noBlock(d)
	case "clock":
		s.verb, ok = clock, r.clock(d, &s) && r.noBlock(d)
	case "expect":
		ok = r.expect(d, &s)
	default:
		r.fail(parse.Position{Line: d.line, Column: 1},
			"the lines of a scenario begin with test, given, write, call, watch, unwatch, clock "+
				"or expect; what belongs to one is indented",
			"%s is nothing that a scenario does", d.word)
		return
	}
	if ok {
		*r.steps() = append(*r.steps(), s)
	}
}

func (r *reader) test(d *directive) {
	at := parse.Position{Line: d.line, Column: 1}
	switch {
	case d.rest.text == "":
		r.fail(at, "for example: test a parcel moves", "a test has a name")
	case len(r.file.Tests) == testsMax:
		r.fail(at, "part it into several files", "the file has more than %d tests", testsMax)
	default:
		r.noBlock(d)
	}
	r.file.Tests = append(r.file.Tests, Test{
		Name: d.rest.text, Line: d.line, program: r.program, seedless: r.bare,
		steps: append([]step(nil), r.before...),
	})
}

func (r *reader) noSeed(d *directive) {
	switch n := len(r.file.Tests); {
	case !r.noBlock(d):
	case n > 0 && len(r.file.Tests[n-1].steps) == len(r.before):
		r.file.Tests[n-1].seedless = true
	case n == 0 && len(r.before) == 0:
		r.bare = true
	default:
		r.fail(d.rest.start(), "", "given no seed stands in front of all other steps")
	}
}

// noBlock fails for indented lines behind a directive that takes none.
func (r *reader) noBlock(d *directive) bool {
	groups := d.block.groups()
	if len(groups) == 0 {
		return true
	}
	r.fail(groups[0].start(), "", "nothing belongs to a line that begins with %s", d.word)
	return false
}

// transaction reads statements from the directive's line and block.
func (r *reader) transaction(d *directive, s *step) bool {
	f := d.block
	switch {
	case d.rest.text != "" && !d.block.empty():
		f = d.rest.continued(&d.block)
	case d.rest.text != "":
		f = d.rest
	case d.block.empty():
		r.fail(parse.Position{Line: d.line, Column: 1}, "for example: "+d.word+" +edge(1, 2)",
			"nothing is written")
		return false
	}
	tree, err := parse.Transaction(f.text)
	if r.failed(&f, err) {
		return false
	}
	s.statements, err = analysis.CheckTransaction(r.program, tree)
	return !r.failed(&f, err)
}

// call reads the name of an action and its values.
func (r *reader) call(d *directive, s *step) bool {
	name, values, ok := r.applied(&d.rest, "ACTION(VALUE, …)")
	if !ok {
		return false
	}
	action := r.program.ActionNamed(name)
	if action == nil {
		r.fail(d.rest.start(), r.known("action"), "there is no action %s", name)
		return false
	}
	s.statements = action.Statements
	s.parameters, ok = r.typed(values, name, action.Parameters)
	return ok
}

// watch reads a key, which must not be watched yet.
func (r *reader) watch(d *directive, s *step) bool {
	if !r.key(&d.rest, false, &s.target) {
		return false
	}
	if watched(*r.steps(), s.target.id()) {
		r.fail(d.rest.start(), "", "%s is watched already", s.target.id())
		return false
	}
	return true
}

func (r *reader) isWatched(d *directive, s *step) bool {
	if watched(*r.steps(), s.target.id()) {
		return true
	}
	r.fail(d.rest.start(), "write in front of what changes it: watch "+s.target.id(),
		"%s is not watched here", s.target.id())
	return false
}

// watched reports whether a key is watched after steps.
func watched(steps []step, id string) bool {
	is := false
	for i := range steps {
		if v := steps[i].verb; (v == watch || v == unwatch) && steps[i].target.id() == id {
			is = v == watch
		}
	}
	return is
}

// clockName is the relation that a program's clock keeps.
const clockName = "clock"

func (r *reader) clock(d *directive, s *step) bool {
	if r.program.ClockMillis == 0 {
		r.fail(parse.Position{Line: d.line, Column: 1}, "declare one: clock every 10s",
			"the program has no clock")
		return false
	}
	f := d.rest.slice(0, "(")
	f.text += ")"
	columns := []analysis.Column{{Name: "second", Type: value.Timestamp}}
	values, ok := r.tuple(&f, clockName, "column", columns)
	if ok {
		s.millis = values[0].Int()
	}
	return ok
}

var writtenPattern = regexp.MustCompile(`^(\d{1,9}) inserted, (\d{1,9}) deleted$`)

// setPattern is what is expected to be there: the word no, how exact it is, and what.
var setPattern = regexp.MustCompile(
	`^(no[ \t]+)?((?:stale|incomplete)[ \t]+)?(rows|changes|errors)(?:[ \t]+|$)`)

const expectForms = "expect rows, expect changes and expect errors are known, each also with " +
	"no; expect stale rows, expect incomplete rows, expect refused, " +
	"and expect 1 inserted, 0 deleted"

func (r *reader) expect(d *directive, s *step) bool {
	f := &d.rest
	if m := writtenPattern.FindStringSubmatch(f.text); m != nil {
		s.verb = expectWritten
		s.inserted, _ = strconv.Atoi(m[1])
		s.deleted, _ = strconv.Atoi(m[2])
		return r.noBlock(d) && r.written(f, false)
	}
	if m := setPattern.FindStringSubmatch(f.text); m != nil &&
		(m[2] == "" || m[3] == "rows" && m[1] == "") {
		none, target := m[1] != "", f.slice(len(m[0]), "")
		switch m[3] {
		case "rows":
			s.doubt = map[string]engine.Doubt{
				"stale": engine.Stale, "incomplete": engine.Incomplete,
			}[strings.TrimSpace(m[2])]
			return r.rows(d, target, none, s)
		case "changes":
			return r.changes(d, target, none, s)
		}
		return r.errors(d, target, none, s)
	}
	if rest, ok := strings.CutPrefix(f.text, "refused"); ok && startsWord(rest) {
		s.verb = expectRefused
		return r.noBlock(d) && r.refusal(f, strings.TrimSpace(rest), s) && r.written(f, true)
	}
	r.fail(f.start(), expectForms, "this is nothing to expect")
	return false
}

// startsWord reports whether a word ends where rest begins.
func startsWord(rest string) bool {
	return rest == "" || rest[0] == ' ' || rest[0] == '\t'
}

// refusal reads the part of a message.
func (r *reader) refusal(f *fragment, text string, s *step) (ok bool) {
	if text == "" {
		return true
	}
	quoted := f.slice(strings.Index(f.text, text), "")
	s.message, ok = r.message(&quoted)
	return ok
}

// message reads a part of a message, in quotes.
func (r *reader) message(f *fragment) (string, bool) {
	quoted := f.slice(0, "(")
	quoted.text += ")"
	quoted.cut = append(quoted.cut, f.cut[1:]...)
	columns := []analysis.Column{{Name: "part", Type: value.String}}
	values, ok := r.tuple(&quoted, "message", "column", columns)
	if !ok {
		return "", false
	}
	return values[0].Str(), true
}

// errors reads parts of the row errors that are expected.
func (r *reader) errors(d *directive, f fragment, none bool, s *step) bool {
	s.verb = expectErrors
	groups := d.block.groups()
	switch {
	case f.text != "":
		r.fail(f.start(), "", "the errors of the whole graph are meant; nothing stands behind")
		return false
	case none:
		return r.noBlock(d)
	case len(groups) == 0:
		r.fail(d.rest.start(), "for example, indented: \"division_by_zero\"",
			"parts of the errors are missing that should stand in the next lines")
		return false
	}
	for i := range groups {
		message, ok := r.message(&groups[i])
		if !ok {
			return false
		}
		s.messages = append(s.messages, message)
	}
	return true
}

// written fails if no write or call is right in front.
func (r *reader) written(f *fragment, refused bool) bool {
	steps := *r.steps()
	for i := len(steps) - 1; i >= 0; i-- {
		switch last := &steps[i]; last.verb {
		case write, call:
			if refused && i == len(steps)-1 {
				last.refused = true
				return true
			}
			return !refused && !last.refused || r.misplaced(f)
		case expectRows, expectChanges, expectErrors, expectWritten:
		default:
			return r.misplaced(f)
		}
	}
	return r.misplaced(f)
}

func (r *reader) misplaced(f *fragment) bool {
	r.fail(f.start(), "", "this stands behind a write or call, of which it speaks")
	return false
}
