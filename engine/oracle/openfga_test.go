package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// fgaTest is a test of OpenFGA's: a store that takes a model and tuples in stages.
type fgaTest struct {
	Name   string
	Stages []struct {
		Model                 string
		Tuples                []fgaTuple
		CheckAssertions       []fgaAssertion
		ListObjectsAssertions []fgaAssertion
		ListUsersAssertions   []fgaAssertion
	}
}

type fgaTuple struct{ Object, Relation, User string }

type fgaAssertion struct {
	Tuple   fgaTuple // of a check
	Request struct { // of a list
		User, Type, Relation, Object string
		Filters                      []string
	}
	ContextualTuples []fgaTuple
	Context          any
	ErrorCode        int
	Expectation      any
}

// fgaCounts are what the tests hold: a change of the numbers is a change of what is
// tested.
type fgaCounts struct {
	Checks, Objects, Users         int // asserted
	Contextual, Conditions, Errors int // left out
	Covered                        int // lists of users that a wildcard covers
	Unrolled                       int // models that are stratified by their facts only
}

var fgaWant = fgaCounts{
	Checks: 352, Objects: 246, Users: 275, Contextual: 16, Errors: 44, Covered: 34, Unrolled: 3,
}

// TestOpenFGA translates the consolidated tests of OpenFGA into programs, facts and
// views, and expects what they expect.
func TestOpenFGA(t *testing.T) {
	var counts fgaCounts
	for _, test := range fgaTests(t) {
		t.Run(test.Name, func(t *testing.T) {
			r := &fgaRun{t: t, engine: engine.New(nil), counts: &counts}
			var tuples []fgaTuple
			for i, stage := range test.Stages {
				tuples = append(tuples, stage.Tuples...)
				r.deploy(stage.Model)
				r.write("+", stage.Tuples)
				r.questions = nil
				r.ask("check", stage.CheckAssertions, (*fgaRun).check)
				r.ask("objects", stage.ListObjectsAssertions, (*fgaRun).objects)
				r.ask("users", stage.ListUsersAssertions, (*fgaRun).users)
				if t.Failed() {
					t.Fatalf("stage %d\n%s", i, r.program.Source)
				}
				r.inAnyOrder(tuples)
			}
		})
	}
	if counts != fgaWant {
		t.Errorf("the tests hold %+v, want %+v", counts, fgaWant)
	}
}

// fgaTests reads the tests through the program that prints them.
func fgaTests(t *testing.T) []fgaTest {
	t.Helper()
	print := exec.Command("go", "run", ".")
	print.Dir = "../../testdata/openfga"
	var complaint bytes.Buffer
	print.Stderr = &complaint
	text, err := print.Output()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("the module with OpenFGA's tests is not to be had: %v: %s", err, complaint.String())
	}
	var file struct{ Tests []fgaTest }
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatalf("OpenFGA's tests: %v: %s", err, complaint.String())
	}
	return file.Tests
}

// fgaRun is one store.
type fgaRun struct {
	t         *testing.T
	engine    *engine.Engine
	program   *analysis.Program
	revision  uint64
	counts    *fgaCounts
	questions []*engine.Key // what the stage asserts, watched
}

func (r *fgaRun) deploy(model string) {
	r.t.Helper()
	m, err := parseFGA(model)
	if err != nil {
		r.t.Fatal(err)
	}
	text := m.program()
	r.program, err = readProgram(text)
	if err != nil && strings.Contains(err.Error(), "negation") {
		r.counts.Unrolled++
		m, _ = parseFGA(model)
		m.levels = fgaLevels
		text = m.program()
		r.program, err = readProgram(text)
	}
	if err == nil {
		_, err = r.engine.Deploy(r.program, true)
	}
	if err != nil {
		r.t.Fatalf("%v\n%s", err, text)
	}
	r.revision++
}

func readProgram(text string) (*analysis.Program, error) {
	file, err := parse.Program(text)
	if err != nil {
		return nil, err
	}
	return analysis.Analyse(file, text)
}

// fgaLevels is more than the longest way through other objects in the tests whose
// models are unrolled.
const fgaLevels = 8

// subject splits type:id#relation into three values.
func subject(text string) []value.Value {
	of, id, _ := strings.Cut(text, ":")
	id, relation, _ := strings.Cut(id, "#")
	return []value.Value{value.OfString(of), value.OfString(id), value.OfString(relation)}
}

func (r *fgaRun) write(sign string, tuples []fgaTuple) {
	r.t.Helper()
	var ops []analysis.Op
	for _, t := range tuples {
		object := subject(t.Object)
		row := append(object[:2:2], value.OfString(t.Relation))
		ops = append(ops, analysis.Op{
			Relation: "tuple", Delete: sign == "-", Row: append(row, subject(t.User)...),
		})
	}
	r.apply(ops)
}

func (r *fgaRun) apply(ops []analysis.Op) {
	r.t.Helper()
	r.revision++
	if _, _, err := r.engine.Apply(r.revision, ops); err != nil {
		r.t.Fatal(err)
	}
}

// ask asserts what can be asserted, and counts it and the rest.
func (r *fgaRun) ask(kind string, assertions []fgaAssertion, ask func(*fgaRun, *fgaAssertion)) {
	for i := range assertions {
		a := &assertions[i]
		switch {
		case a.ErrorCode != 0:
			r.counts.Errors++
		case len(a.ContextualTuples) > 0:
			r.counts.Contextual++
		case a.Context != nil:
			r.counts.Conditions++
		default:
			ask(r, a)
			if r.t.Failed() {
				r.t.Fatalf("%s assertion %d: %+v", kind, i, *a)
			}
		}
	}
}

// rows watches a view at a key and returns the texts of the column at.
func (r *fgaRun) rows(kind, of, relation string, key []value.Value, at int) []string {
	r.t.Helper()
	k, err := r.engine.Watch(kind+"_"+fgaRelation(of, relation), key)
	if err != nil {
		r.t.Fatal(err)
	}
	r.questions = append(r.questions, k)
	var out []string
	for row := range slices.Chunk(r.engine.Rows(k, 0, nil), 4) {
		out = append(out, row[at].Str())
	}
	return out
}

func (r *fgaRun) asked(user []value.Value) {
	r.apply([]analysis.Op{{Relation: "asked", Row: user}})
}

func (r *fgaRun) check(a *fgaAssertion) {
	r.counts.Checks++
	object, user := subject(a.Tuple.Object), subject(a.Tuple.User)
	r.asked(user)
	key := append(object[1:2:2], user...)
	rows := r.rows("check", object[0].Str(), a.Tuple.Relation, key, 0)
	if got := len(rows) > 0; got != a.Expectation {
		r.t.Errorf("check says %v", got)
	}
}

func (r *fgaRun) objects(a *fgaAssertion) {
	r.counts.Objects++
	user := subject(a.Request.User)
	r.asked(user)
	got := r.rows("objects", a.Request.Type, a.Request.Relation, user, 0)
	for i := range got {
		got[i] = a.Request.Type + ":" + got[i]
	}
	if want := fgaList(a.Expectation); !slices.Equal(got, want) {
		r.t.Errorf("objects are %v, want %v", got, want)
	}
}

func (r *fgaRun) users(a *fgaAssertion) {
	r.counts.Users++
	object := subject(a.Request.Object)
	var got []string
	covered := false
	for _, filter := range a.Request.Filters {
		of, relation, _ := strings.Cut(filter, "#")
		key := []value.Value{object[1], value.OfString(of), value.OfString(relation)}
		if relation != "" {
			r.apply([]analysis.Op{{Relation: "filtered", Row: key[1:]}})
			r.asked(object)
		}
		for _, id := range r.rows("users", object[0].Str(), a.Request.Relation, key, 2) {
			user := of + ":" + id
			if relation != "" {
				user += "#" + relation
			}
			covered = covered || id == "*"
			got = append(got, user)
		}
	}
	slices.Sort(got)
	want := fgaList(a.Expectation)
	if covered {
		// Whoever a wildcard covers need not be listed.
		r.counts.Covered++
		got = slices.DeleteFunc(got, func(user string) bool {
			of, _, _ := strings.Cut(user, ":")
			return slices.Contains(want, of+":*") && !slices.Contains(want, user)
		})
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("users are %v, want %v", got, want)
	}
}

func fgaList(expectation any) []string {
	list, _ := expectation.([]any)
	var out []string
	for _, item := range list {
		out = append(out, fmt.Sprint(item))
	}
	slices.Sort(out)
	return out
}

// inAnyOrder takes all tuples out and puts them in one by one, shuffled; everything
// that was asked has the same rows again. Then they go in reverse: with the same
// tuples there are the same rows as on the way in.
func (r *fgaRun) inAnyOrder(tuples []fgaTuple) {
	r.t.Helper()
	all := r.answers()
	r.write("-", tuples)
	tuples = slices.Clone(tuples)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(tuples), func(i, j int) { tuples[i], tuples[j] = tuples[j], tuples[i] })
	before := []string{r.answers()}
	for i := range tuples {
		r.write("+", tuples[i:i+1])
		before = append(before, r.answers())
	}
	if got := r.answers(); got != all {
		r.t.Errorf("seed %d: one by one the answers are\n%s\nwant\n%s", seed, got, all)
	}
	for i := len(tuples) - 1; i >= 0; i-- {
		r.write("-", tuples[i:i+1])
		// A tuple that stands twice goes the first time.
		if slices.Contains(tuples[:i], tuples[i]) {
			r.write("+", tuples[i:i+1])
		}
		if got := r.answers(); got != before[i] {
			r.t.Errorf("seed %d: without the last %d, the answers are\n%s\nwant\n%s",
				seed, len(tuples)-i, got, before[i])
		}
	}
	r.write("+", tuples)
	for _, k := range r.questions {
		r.engine.Unwatch(k)
	}
}

// answers spells the rows of all that is watched.
func (r *fgaRun) answers() string {
	var b strings.Builder
	for _, k := range r.questions {
		fmt.Fprintln(&b, k.View(), k.Values(), r.engine.Rows(k, 0, nil))
	}
	return b.String()
}
