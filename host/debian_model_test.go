package host_test

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// debianTables are the tables of testdata/debian in the order in which the test
// loads them, with their rows as the README there counts them.
var debianTables = []struct {
	name string
	rows int
}{
	{"packages", 63_681}, {"depends", 283_196}, {"provides", 37_582}, {"conflicts", 18_374},
}

func debianFile(table string) string {
	return filepath.Join("..", "testdata", "debian", table+".csv.gz")
}

// debianFact is a row of a table; a size is an int, everything else a string.
type debianFact struct {
	table string
	row   []any
}

func dependsFact(pkg, name string) debianFact { return debianFact{"depends", []any{pkg, name}} }

func providesFact(pkg, name string) debianFact { return debianFact{"provides", []any{pkg, name}} }

func packagesFact(pkg string, is debianPackage) debianFact {
	return debianFact{"packages", []any{pkg, is.section, is.kib}}
}

// debianChange is one transaction.
type debianChange struct {
	kind           string
	insert, remove []debianFact
}

// body spells the transaction for the server.
func (c *debianChange) body(t *testing.T) string {
	t.Helper()
	tables := func(facts []debianFact) map[string][][]any {
		rows := map[string][][]any{}
		for _, f := range facts {
			rows[f.table] = append(rows[f.table], f.row)
		}
		return rows
	}
	text, err := json.Marshal(map[string]any{"insert": tables(c.insert), "delete": tables(c.remove)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type debianNames map[string]map[string]struct{}

func (n debianNames) set(key, name string, there bool) {
	if !there {
		delete(n[key], name)
		return
	}
	if n[key] == nil {
		n[key] = map[string]struct{}{}
	}
	n[key][name] = struct{}{}
}

func (n debianNames) sorted(key string) []string { return slices.Sorted(maps.Keys(n[key])) }

type debianPackage struct {
	section string
	kib     int
}

// debianModel is the graph as plain maps: what the engine derives, it derives
// again from scratch for each question.
type debianModel struct {
	names     []string // of packages, sorted, as loaded
	packages  map[string]debianPackage
	depends   debianNames
	providers debianNames // by the name that is provided
}

func readDebian(t *testing.T) *debianModel {
	t.Helper()
	m := &debianModel{
		packages: map[string]debianPackage{}, depends: debianNames{}, providers: debianNames{},
	}
	for _, table := range debianTables {
		rows := readDebianTable(t, table.name)
		if len(rows) != table.rows {
			t.Fatalf("%s has %d rows, want %d", table.name, len(rows), table.rows)
		}
		for _, row := range rows {
			f := debianFact{table: table.name, row: []any{row[0], row[1]}}
			if table.name == "packages" {
				kib, err := strconv.Atoi(row[2])
				if err != nil {
					t.Fatal(err)
				}
				f.row = append(f.row, kib)
			}
			m.set(f, true)
		}
	}
	m.names = slices.Sorted(maps.Keys(m.packages))
	return m
}

func readDebianTable(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open(debianFile(name))
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
	return rows[1:]
}

func (m *debianModel) set(f debianFact, there bool) {
	switch first, second := f.row[0].(string), f.row[1].(string); {
	case f.table == "depends":
		m.depends.set(first, second, there)
	case f.table == "provides":
		m.providers.set(second, first, there)
	case f.table == "packages" && there:
		m.packages[first] = debianPackage{section: second, kib: f.row[2].(int)}
	case f.table == "packages":
		// A package has one row in these tests.
		if m.packages[first] == (debianPackage{section: second, kib: f.row[2].(int)}) {
			delete(m.packages, first)
		}
	}
}

// apply does what a transaction does: deletions first.
func (m *debianModel) apply(c *debianChange) {
	for _, f := range c.remove {
		m.set(f, false)
	}
	for _, f := range c.insert {
		m.set(f, true)
	}
}

// needs are the packages that pkg needs directly.
func (m *debianModel) needs(pkg string) map[string]struct{} {
	needs := map[string]struct{}{}
	for name := range m.depends[pkg] {
		if _, there := m.packages[name]; there {
			needs[name] = struct{}{}
		}
		maps.Copy(needs, m.providers[name])
	}
	return needs
}

// deps are the rows of view deps at a key, as text, sorted.
func (m *debianModel) deps(pkg string) []string {
	var rows []string
	for other := range m.needs(pkg) {
		if is, there := m.packages[other]; there {
			rows = append(rows, fmt.Sprint([]any{pkg, other, is.section, is.kib}))
		}
	}
	slices.Sort(rows)
	return rows
}

// everything are the rows of view everything at a key, as text, sorted.
func (m *debianModel) everything(pkg string) []string {
	reached := m.needs(pkg)
	for todo := slices.Collect(maps.Keys(reached)); len(todo) > 0; {
		last := len(todo) - 1
		next := m.needs(todo[last])
		todo = todo[:last]
		for other := range next {
			if _, again := reached[other]; !again {
				reached[other] = struct{}{}
				todo = append(todo, other)
			}
		}
	}
	rows := make([]string, 0, len(reached))
	for other := range reached {
		rows = append(rows, fmt.Sprint([]any{pkg, other}))
	}
	slices.Sort(rows)
	return rows
}

// debianChanger draws changes of every kind that can reach a view in its own way.
type debianChanger struct {
	*debianModel
	rng     *rand.Rand
	watched []string
}

// kinds is what draw chooses from.
var debianKinds = []struct {
	name string
	draw func(d *debianChanger, c *debianChange)
}{
	{"insert a dependency", (*debianChanger).insertDependency},
	{"delete a dependency", (*debianChanger).deleteDependency},
	{"change several packages", (*debianChanger).changeSeveral},
	{"remove or return a package", (*debianChanger).togglePackage},
	{"another size", (*debianChanger).resize},
	{"provide or not", (*debianChanger).toggleProvider},
	{"another way to the same row", (*debianChanger).derivedTwice},
	{"nobody's", (*debianChanger).nobodys},
	{"nothing at all", (*debianChanger).nothing},
}

func (d *debianChanger) draw() *debianChange {
	kind := debianKinds[d.rng.IntN(len(debianKinds))]
	c := &debianChange{kind: kind.name}
	kind.draw(d, c)
	return c
}

func (d *debianChanger) oneOf(names []string) string { return names[d.rng.IntN(len(names))] }

// dependency is a name that the package depends on, "" if it depends on none.
func (d *debianChanger) dependency(pkg string) string {
	if names := d.depends.sorted(pkg); len(names) > 0 {
		return d.oneOf(names)
	}
	return ""
}

// neededByWatched is a package that some watched package needs.
func (d *debianChanger) neededByWatched() (needed, by string) {
	for {
		by := d.oneOf(d.watched)
		if all := slices.Sorted(maps.Keys(d.needs(by))); len(all) > 0 {
			return d.oneOf(all), by
		}
	}
}

func (d *debianChanger) insertDependency(c *debianChange) {
	c.insert = append(c.insert, dependsFact(d.oneOf(d.watched), d.oneOf(d.names)))
}

func (d *debianChanger) deleteDependency(c *debianChange) {
	pkg := d.oneOf(d.watched)
	if name := d.dependency(pkg); name != "" {
		c.remove = append(c.remove, dependsFact(pkg, name))
	}
}

func (d *debianChanger) changeSeveral(c *debianChange) {
	common := d.oneOf(d.names)
	for range 2 + d.rng.IntN(12) {
		d.deleteDependency(c)
		c.insert = append(c.insert, dependsFact(d.oneOf(d.watched), common))
	}
}

// togglePackage takes a package that is needed out of the graph; the same draw
// on a package that was taken out brings it back.
func (d *debianChanger) togglePackage(c *debianChange) {
	name := d.dependency(d.oneOf(d.watched))
	if is, there := d.packages[name]; there {
		c.remove = append(c.remove, packagesFact(name, is))
	} else if name != "" {
		c.insert = append(c.insert, packagesFact(name, debianPackage{section: "back", kib: 1}))
	}
}

func (d *debianChanger) resize(c *debianChange) {
	name, _ := d.neededByWatched()
	if is, there := d.packages[name]; there {
		c.remove = append(c.remove, packagesFact(name, is))
		is.kib = d.rng.IntN(1_000_000)
		c.insert = append(c.insert, packagesFact(name, is))
	}
}

func (d *debianChanger) toggleProvider(c *debianChange) {
	name := d.dependency(d.oneOf(d.watched))
	if name == "" {
		return
	}
	if providers := d.providers.sorted(name); len(providers) > 0 && d.rng.IntN(2) == 0 {
		c.remove = append(c.remove, providesFact(d.oneOf(providers), name))
		return
	}
	c.insert = append(c.insert, providesFact(d.oneOf(d.names), name))
}

// derivedTwice has a needed package provide a name that is depended on already,
// so that a row has one more derivation; or takes one of the two away.
func (d *debianChanger) derivedTwice(c *debianChange) {
	needed, by := d.neededByWatched()
	name := d.dependency(by)
	f := providesFact(needed, name)
	if _, there := d.providers[name][needed]; there {
		c.remove = append(c.remove, f)
		return
	}
	c.insert = append(c.insert, f)
}

func (d *debianChanger) nobodys(c *debianChange) {
	for range 1 + d.rng.IntN(20) {
		if pkg := d.oneOf(d.names); !slices.Contains(d.watched, pkg) {
			c.insert = append(c.insert, dependsFact(pkg, d.oneOf(d.names)))
		}
	}
}

// nothing deletes rows that are inserted again at once.
func (d *debianChanger) nothing(c *debianChange) {
	for range 5 {
		d.deleteDependency(c)
	}
	c.insert = slices.Clone(c.remove)
}
