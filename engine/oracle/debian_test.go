package oracle

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/value"
)

// debianProgram asks of a package what it needs, what of that conflicts and what
// conflicts with nothing else, what nothing provides, and how much it installs.
const debianProgram = `
+packages(package: string, section: string, kib: int)
+depends(package: string, dependency: string)
+provides(package: string, virtual: string)
+conflicts(package: string, other: string)
direct(P, D) <- depends(P, D), packages(D, _, _)
direct(P, Q) <- depends(P, V), provides(Q, V)
needs(P, D) <- direct(P, D)
needs(P, D) <- direct(P, Q), needs(Q, D)
clash(P, D, E) <- needs(P, D), conflicts(D, E), needs(P, E), D != E
calm(P, D) <- needs(P, D), conflicts(D, _), !clash(P, D, _)
unmet(P, V) <- depends(P, V), !packages(V, _, _), !provides(_, V)
unmet(P, V) <- needs(P, D), depends(D, V), !packages(V, _, _), !provides(_, V)
size(P, count<D>, sum<K>) <- needs(P, D), packages(D, _, K)
view all_needs($p: string) := ?needs($p, D)
view all_clash($p: string) := ?clash($p, D, E)
view all_calm($p: string) := ?calm($p, D)
view all_unmet($p: string) := ?unmet($p, V)
view all_size($p: string) := ?size($p, N, KiB)
`

const (
	debianKeys    = 100
	debianChanges = 30
)

// debianHubs are what very many packages need.
var debianHubs = []string{"libc6", "libgcc-s1", "zlib1g", "perl:any", "python3", "libstdc++6"}

type names map[string]map[string]bool

func (n names) set(key, name string, there bool) {
	if n[key] == nil {
		n[key] = map[string]bool{}
	}
	if n[key][name] = true; !there {
		delete(n[key], name)
	}
}

// debianModel is the graph as maps; it answers by search.
type debianModel struct {
	packages  map[string]map[[2]string]bool // section and size, by name
	depends   names
	providers names
	conflicts names
}

func (m *debianModel) apply(op analysis.Op) {
	first, second := op.Row[0].Str(), op.Row[1].Str()
	switch op.Relation {
	case "packages":
		if m.packages[first] == nil {
			m.packages[first] = map[[2]string]bool{}
		}
		is := [2]string{second, op.Row[2].String()}
		if m.packages[first][is] = true; op.Delete {
			delete(m.packages[first], is)
		}
	case "depends":
		m.depends.set(first, second, !op.Delete)
	case "provides":
		m.providers.set(second, first, !op.Delete)
	case "conflicts":
		m.conflicts.set(first, second, !op.Delete)
	}
}

// answers returns the rows of all views at a package, by a search in breadth.
func (m *debianModel) answers(p string) map[string]naive.Set {
	needed := map[string]bool{}
	for queue := []string{p}; len(queue) > 0; queue = queue[1:] {
		for name := range m.depends[queue[0]] {
			next := maps.Clone(m.providers[name])
			if len(m.packages[name]) > 0 {
				if next == nil {
					next = map[string]bool{}
				}
				next[name] = true
			}
			for other := range next {
				if !needed[other] {
					needed[other] = true
					queue = append(queue, other)
				}
			}
		}
	}
	out := map[string]naive.Set{
		"needs": {}, "clash": {}, "calm": {}, "unmet": {}, "size": {},
	}
	put := func(view string, cells ...string) {
		row := make([]value.Value, len(cells))
		for i, c := range cells {
			row[i] = value.OfString(c)
		}
		out[view].Add(row)
	}
	count, size := 0, 0
	unmet := func(of string) {
		for name := range m.depends[of] {
			if len(m.packages[name]) == 0 && len(m.providers[name]) == 0 {
				put("unmet", p, name)
			}
		}
	}
	unmet(p)
	for d := range needed {
		put("needs", p, d)
		unmet(d)
		calm := len(m.conflicts[d]) > 0
		for e := range m.conflicts[d] {
			if needed[e] && d != e {
				put("clash", p, d, e)
				calm = false
			}
		}
		if calm {
			put("calm", p, d)
		}
		for is := range m.packages[d] {
			kib, _ := strconv.Atoi(is[1])
			count, size = count+1, size+kib
		}
	}
	if count > 0 {
		out["size"].Add([]value.Value{
			value.OfString(p), value.OfInt(int64(count)), value.OfInt(int64(size)),
		})
	}
	return out
}

// readDebian returns the rows of a table as insertions.
func readDebian(t *testing.T, table string) []analysis.Op {
	t.Helper()
	file, err := os.Open("../../testdata/debian/" + table + ".csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	ops := make([]analysis.Op, 0, len(rows))
	for _, row := range rows[1:] {
		op := analysis.Op{Relation: table}
		for i, cell := range row {
			if i < 2 {
				op.Row = append(op.Row, value.OfString(cell))
				continue
			}
			number, err := strconv.ParseInt(cell, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			op.Row = append(op.Row, value.OfInt(number))
		}
		ops = append(ops, op)
	}
	return ops
}

// debianRun is the graph in the engine and in the model.
type debianRun struct {
	t        *testing.T
	engine   *engine.Engine
	model    *debianModel
	all      map[string][]analysis.Op // the tables as loaded
	revision uint64
	keys     []*engine.Key
	rows     map[*engine.Key]naive.Set
	moved    int // keys that commits changed
}

// TestDebianGraph watches 100 packages of Debian 12 in five views, takes hubs out of
// the graph and puts them back, and changes it at random. What each commit tells must
// be the difference between what a search in breadth finds before and after.
func TestDebianGraph(t *testing.T) {
	if underRace {
		t.Skip("one goroutine, and a hundred times as slow under the race detector")
	}
	seed := *oracleSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	r := &debianRun{
		t: t, engine: engine.New(nil), all: map[string][]analysis.Op{},
		rows: map[*engine.Key]naive.Set{},
		model: &debianModel{
			map[string]map[[2]string]bool{}, names{}, names{}, names{},
		},
	}
	p, err := readProgram(debianProgram)
	if err == nil {
		_, err = r.engine.Deploy(p, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"packages", "depends", "provides", "conflicts"} {
		r.all[table] = readDebian(t, table)
		r.commit("load "+table, r.all[table])
	}
	var watched []string
	for _, i := range random.Perm(len(r.all["packages"]))[:debianKeys] {
		watched = append(watched, r.all["packages"][i].Row[0].Str())
	}
	r.watch(p, watched)
	for _, hub := range debianHubs {
		r.hub(hub)
	}
	for range debianChanges {
		r.random(random, watched)
	}
	t.Logf("%d keys, %d revisions, %d changes of keys, %d derived rows",
		len(r.keys), r.revision, r.moved, r.engine.Stats().DerivedRows)
}

func (r *debianRun) watch(p *analysis.Program, watched []string) {
	r.t.Helper()
	rows := 0
	for _, pkg := range watched {
		answers := r.model.answers(pkg)
		for i := range p.Views {
			v := &p.Views[i]
			k, err := r.engine.Watch(v.Name, []value.Value{value.OfString(pkg)})
			if err != nil {
				r.t.Fatal(err)
			}
			r.keys = append(r.keys, k)
			r.rows[k] = answers[v.Name[4:]]
			rows += len(answers[v.Name[4:]])
			got := setOf(r.engine.Rows(k, 0, nil), len(k.Columns(0)))
			if !same(got, answers[v.Name[4:]]) {
				r.t.Fatalf("%s(%s) has %v, want %v", v.Name, pkg, got.Rows(), answers[v.Name[4:]].Rows())
			}
		}
	}
	r.t.Logf("%d rows are watched", rows)
}

func same(a, b naive.Set) bool { return len(a) == len(b) && len(missing(a, b)) == 0 }

// missing returns the rows of a that b has not, flat and sorted.
func missing(a, b naive.Set) []value.Value {
	only := naive.Set{}
	for k, row := range a {
		if _, there := b[k]; !there {
			only[k] = row
		}
	}
	return slices.Concat(only.Rows()...)
}

// commit applies operations to both, and compares every change.
func (r *debianRun) commit(what string, ops []analysis.Op) {
	r.t.Helper()
	r.revision++
	if _, _, err := r.engine.Apply(r.revision, ops); err != nil {
		r.t.Fatal(err)
	}
	for _, op := range ops {
		r.model.apply(op)
	}
	entered, left := map[*engine.Key][]value.Value{}, map[*engine.Key][]value.Value{}
	var answers map[string]naive.Set
	last := ""
	for _, k := range r.keys {
		if pkg := k.Values()[0].Str(); pkg != last {
			answers, last = r.model.answers(pkg), pkg
		}
		next := answers[k.View()[4:]]
		if in, out := missing(next, r.rows[k]), missing(r.rows[k], next); len(in)+len(out) > 0 {
			entered[k], left[k] = in, out
		}
		r.rows[k] = next
	}
	r.moved += len(entered)
	r.engine.Changes(func(k *engine.Key, revision uint64, parts []engine.Change) {
		if !slices.Equal(parts[0].Insert, entered[k]) || !slices.Equal(parts[0].Retract, left[k]) {
			r.t.Errorf("%s: at %s(%v) the rows\n%v entered, want\n%v;\n%v left, want\n%v", what,
				k.View(), k.Values(), parts[0].Insert, entered[k], parts[0].Retract, left[k])
		}
		if revision != r.revision {
			r.t.Errorf("%s: %s(%v) changed at %d, want %d", what, k.View(), k.Values(), revision, r.revision)
		}
		delete(entered, k)
	})
	for k := range entered {
		r.t.Errorf("%s: nothing is told of %s(%v)", what, k.View(), k.Values())
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// hub takes a package out of the graph in several ways, and puts it back.
func (r *debianRun) hub(name string) {
	for _, table := range []string{"packages", "depends", "provides"} {
		var remove []analysis.Op
		for _, op := range r.all[table] {
			if op.Row[0].Str() == name || table == "depends" && op.Row[1].Str() == name {
				op.Delete = true
				remove = append(remove, op)
			}
		}
		insert := slices.Clone(remove)
		for i := range insert {
			insert[i].Delete = false
		}
		moved := r.moved
		r.commit(fmt.Sprintf("%d rows of %s of %s go", len(remove), table, name), remove)
		went := r.moved - moved
		r.commit(fmt.Sprintf("%d rows of %s of %s come back", len(insert), table, name), insert)
		if came := r.moved - moved - went; came != went {
			r.t.Errorf("%s of %s: %d keys changed, then %d", table, name, went, came)
		}
		r.commit("nothing of "+table, append(remove, insert...))
	}
}

// random changes a few rows near what is watched.
func (r *debianRun) random(random *rand.Rand, watched []string) {
	near := []string{watched[random.IntN(len(watched))]}
	for row := range r.model.depends[near[0]] {
		near = append(near, row)
	}
	slices.Sort(near[1:])
	name := near[random.IntN(len(near))]
	var ops []analysis.Op
	for _, table := range []string{"packages", "depends", "provides", "conflicts"} {
		for _, op := range r.all[table] {
			if op.Row[0].Str() == name && random.IntN(2) == 0 {
				op.Delete = random.IntN(2) == 0
				ops = append(ops, op)
			}
		}
	}
	other := r.all["packages"][random.IntN(len(r.all["packages"]))].Row[0]
	for _, table := range []string{"depends", "conflicts"} {
		ops = append(ops, analysis.Op{Relation: table, Row: []value.Value{value.OfString(name), other}})
	}
	r.commit("a random change of "+name, ops)
}
