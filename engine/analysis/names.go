package analysis

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

// nearest returns the candidate that name is probably a misspelling of, "" if
// none is near. Of two equally near it returns the first. A name of one letter
// is near to itself in the other case only.
func nearest(name string, candidates []string) string {
	best, found := min(len(name), max(1, len(name)/3)+1), ""
	for _, c := range candidates {
		if d := distance(name, c, best); d < best {
			best, found = d, c
		}
	}
	return found
}

// distance returns how many insertions, deletions, replacements and swaps of
// neighbours turn a into b, upper and lower case being alike; limit or more if
// there are at least limit of them.
func distance(a, b string, limit int) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// listed returns the first few names, to tell what there is.
func listed(names []string) string {
	const few = 8
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// kindText returns the kind with its article: "an int".
func kindText(k value.Kind) string {
	switch k {
	case value.Int:
		return "an int"
	case value.Bytes, value.Null:
		return k.String()
	}
	return "a " + k.String()
}

// signature returns the relation as its schema would declare it.
func signature(r *Relation) string {
	parts := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		parts[i] = c.Name
		if c.Type != value.Invalid {
			parts[i] += ": " + c.Type.String()
		}
		if c.Nullable {
			parts[i] += "?"
		}
	}
	return r.Name + "(" + strings.Join(parts, ", ") + ")"
}

// hereAre returns "here is 1 value", "here are 2 values".
func hereAre(n int, what string) string {
	if n == 1 {
		return "here is " + plural(n, what)
	}
	return "here are " + plural(n, what)
}

// plural returns "1 column", "2 columns".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// columnNames makes names distinct: the second X becomes X_2.
func columnNames(columns []Column) {
	used := map[string]bool{}
	for i := range columns {
		name := columns[i].Name
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s_%d", columns[i].Name, n)
		}
		columns[i].Name = name
		used[name] = true
	}
}

// relationNames returns the names of the program's relations in order of the
// text; baseOnly leaves out derived ones.
func (p *Program) relationNames(baseOnly bool) []string {
	var names []string
	for i := range p.Relations {
		if !baseOnly || !p.Relations[i].Derived {
			names = append(names, p.Relations[i].Name)
		}
	}
	return names
}

// unknownRelation words the error of a name that no relation has.
func (p *Program) unknownRelation(name string, baseOnly bool) (message, hint string) {
	message = "there is no relation " + name
	names := p.relationNames(baseOnly)
	switch near := nearest(name, names); {
	case p.ViewNamed(name) != nil:
		return name + " is a view, not a relation", ""
	case p.ActionNamed(name) != nil:
		return name + " is an action, not a relation", ""
	case near != "":
		hint = "did you mean " + near + "?"
	case len(names) == 0:
		hint = "declare it: +" + name + "(column: type, ...)"
	case baseOnly:
		hint = "the relations that hold facts are " + listed(names)
	default:
		hint = "the relations are " + listed(names)
	}
	return message, hint
}
