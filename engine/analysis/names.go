package analysis

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine/suggest"
	"github.com/heddle-live/heddle/engine/value"
)

// nearest returns the candidate that name is probably a misspelling of, or "".
func nearest(name string, candidates []string) string { return suggest.Nearest(name, candidates) }

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

// renamed returns the relation that was called name before, or "".
func (p *Program) renamed(name string) string {
	for i := range p.Relations {
		if p.Relations[i].Was == name && name != "" {
			return p.Relations[i].Name
		}
	}
	return ""
}

// unknownRelation words the error of a name that no relation has.
func (p *Program) unknownRelation(name string, baseOnly bool) (message, hint string) {
	message = "there is no relation " + name
	names := p.relationNames(baseOnly)
	switch near := nearest(name, names); {
	case p.renamed(name) != "":
		hint = "it is called " + p.renamed(name) + " now"
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
