package frame

import "fmt"

// Row is one row: a cell for each column, each an int64, float64, string, bool, Bytes
// or Timestamp, or nil in a nullable column.
type Row = []any

// Rows is what a frame says about the rows of one unit: of the view itself, of
// one named part, or of one key of a set.
type Rows struct {
	Snapshot    []Row // all rows, or one part of them
	HasSnapshot bool  // an empty snapshot differs from none
	Insert      []Row // entered since the base
	Retract     []Row // left since the base
	Stale       *Stale
	Closed      *Closed
}

// Unit is a named part of a view or a key of a set, in the frame's order.
type Unit struct {
	Name string
	Rows
}

// Frame is one parsed frame. Its own Rows are used unless it has Parts or Keys.
// It aliases nothing of the parsed bytes.
type Frame struct {
	Header
	Rows
	Last    bool
	Base    uint64
	HasBase bool
	Parts   []Unit // nil unless the view has named parts
	Keys    []Unit // nil unless the track is a set
}

// ParseFrame reads one frame. Columns of meta type the cells; with a nil meta
// integers become int64, other numbers float64 and strings stay strings, so
// that integers beyond 2^53-1 and bytes are seen as strings. Unknown members are skipped.
// A missing revision, a cell of another type than its column's and a row of
// another width are errors wrapping ErrFrame.
func ParseFrame(payload []byte, meta *Meta) (*Frame, error) {
	s, err := newScanner(payload)
	if err != nil {
		return nil, err
	}
	p := frameParser{scanner: s, meta: meta}
	f := &Frame{}
	revision := false
	err = s.object("frame", func(name string) (err error) {
		switch name {
		case "revision":
			revision = true
			f.Revision, err = s.number(name)
		case "epoch":
			f.Epoch, err = s.text(name)
		case "schema":
			f.Schema, err = s.number(name)
		case "last":
			f.Last, err = s.flag(name)
		case "base":
			f.HasBase = true
			f.Base, err = s.number(name)
		case "parts":
			f.Parts, err = p.units(name, func(part string) []Column { return meta.part(part) })
		case "keys":
			f.Keys, err = p.units(name, func(string) []Column { return meta.columns() })
		default:
			err = p.rowsMember(&f.Rows, name, meta.columns())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !revision {
		return nil, fmt.Errorf("%w: no revision", ErrFrame)
	}
	return f, nil
}

type frameParser struct {
	*scanner
	meta *Meta
}

func (p frameParser) units(what string, columns func(name string) []Column) ([]Unit, error) {
	units := []Unit{}
	at := map[string]int{}
	err := p.object(what, func(name string) error {
		u := Unit{Name: name}
		err := p.object(what, func(member string) error {
			return p.rowsMember(&u.Rows, member, columns(name))
		})
		// As JSON.parse has it, the last of several members with one name counts.
		if i, again := at[name]; again {
			units[i] = u
		} else {
			at[name] = len(units)
			units = append(units, u)
		}
		return err
	})
	return units, err
}

func (p frameParser) rowsMember(r *Rows, name string, columns []Column) (err error) {
	switch name {
	case "snapshot":
		r.HasSnapshot = true
		r.Snapshot, err = p.rows(name, columns)
	case "insert":
		r.Insert, err = p.rows(name, columns)
	case "retract":
		r.Retract, err = p.rows(name, columns)
	case "stale":
		r.Stale, err = p.stale()
	case "closed":
		r.Closed, err = p.closed()
	default:
		p.raw()
	}
	return err
}

func (p frameParser) rows(what string, columns []Column) ([]Row, error) {
	rows := []Row{}
	err := p.array(what, func() error {
		row := make(Row, 0, max(len(columns), 1))
		err := p.array("row", func() error {
			column := untyped
			if len(row) < len(columns) {
				column = columns[len(row)]
			}
			c, err := p.cell(column)
			row = append(row, c)
			return err
		})
		if err == nil && columns != nil && len(row) != len(columns) {
			return fmt.Errorf("%w: a row has %d cells, the view %d columns",
				ErrFrame, len(row), len(columns))
		}
		rows = append(rows, row)
		return err
	})
	return rows, err
}

func (p frameParser) stale() (*Stale, error) {
	out := &Stale{}
	err := p.object("stale", func(name string) (err error) {
		switch name {
		case "code":
			out.Code, err = p.text(name)
		case "message":
			out.Message, err = p.text(name)
		case "rule":
			out.Rule, err = p.text(name)
		case "row":
			out.Row = Row{}
			err = p.array(name, func() error {
				c, err := p.cell(untyped)
				out.Row = append(out.Row, c)
				return err
			})
		default:
			p.raw()
		}
		return err
	})
	return out, err
}

func (p frameParser) closed() (*Closed, error) {
	out := &Closed{}
	err := p.object("closed", func(name string) (err error) {
		switch name {
		case "code":
			out.Code, err = p.text(name)
		case "message":
			out.Message, err = p.text(name)
		default:
			p.raw()
		}
		return err
	})
	return out, err
}
