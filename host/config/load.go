package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// Names of the file's path in the other two sources.
const (
	fileFlag     = "config"
	fileVariable = "HEDDLE_CONFIG"
)

// fileBytesMax is the largest settings file that is read.
const fileBytesMax = 1 << 20

// FieldError is one problem with one setting.
type FieldError struct {
	Field   string // its name in the file
	Source  string // file and line, environment variable, flag, or default
	Value   string // as written; *** for a secret
	Problem string // what is wrong, or "" if Allowed says it all
	Allowed string
}

// Error returns one line that says which setting, from where, and what is allowed.
func (e *FieldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", e.Field)
	if e.Value != "" {
		fmt.Fprintf(&b, "%q ", e.Value)
	}
	fmt.Fprintf(&b, "(%s)", e.Source)
	if e.Problem != "" {
		b.WriteString(" " + e.Problem)
	}
	if e.Allowed != "" {
		b.WriteString(": expected " + e.Allowed)
	}
	return b.String()
}

// AddFlags adds --config and a flag for each setting of the groups. Their values
// are read by Load; a wrong one is reported there.
func AddFlags(flags *pflag.FlagSet, groups ...string) {
	flags.String(fileFlag, "", "file with settings (TOML)")
	for _, f := range fields {
		if slices.Contains(groups, f.Group) {
			flags.Var(&flagValue{text: f.Default, kind: f.kind.Name()}, f.Flag(), f.Help)
		}
	}
}

// flagValue keeps a flag's text.
type flagValue struct{ text, kind string }

func (v *flagValue) String() string     { return v.text }
func (v *flagValue) Set(s string) error { v.text = s; return nil }

// Type is what the help shows behind the flag's name.
func (v *flagValue) Type() string { return strings.ToLower(v.kind) }

// Load puts the defaults, the file, the environment (as os.Environ gives it) and
// the flags that were given on top of each other and validates what comes out.
// The file is the one that --config names, else HEDDLE_CONFIG; without either
// there is none. flags may be nil. The error joins all problems, most of them
// of type *FieldError; the Config means nothing then.
func Load(flags *pflag.FlagSet, environ []string) (Config, error) {
	l := loader{c: Default(), environ: environmentMap(environ)}
	l.c.sources = map[string]string{}
	path := l.environ[fileVariable]
	if flags != nil {
		if f := flags.Lookup(fileFlag); f != nil && f.Changed {
			path = f.Value.String()
		}
	}
	if path != "" {
		l.file(path)
	}
	for i := range fields {
		f := &fields[i]
		if text := l.environ[f.Variable()]; text != "" { // an empty one counts as none
			l.set(f, text, "environment "+f.Variable())
		}
	}
	if flags != nil {
		for i := range fields {
			f := &fields[i]
			if flag := flags.Lookup(f.Flag()); flag != nil && flag.Changed {
				l.set(f, flag.Value.String(), "flag --"+f.Flag())
			}
		}
	}
	return l.c, errors.Join(append(l.problems, l.c.Validate())...)
}

// Validate returns every problem with c, joined, each a *FieldError; nil if
// there is none.
func (c *Config) Validate() error {
	var problems []error
	for i := range fields {
		f := &fields[i]
		if !f.valid(c) {
			problems = append(problems, f.problem(f.shown(c), c.Source(f.Name), ""))
		}
	}
	if c.AdminListen == c.DataListen && !strings.HasSuffix(c.AdminListen, ":0") {
		problems = append(problems, &FieldError{
			Field: "admin_listen", Source: c.Source("admin_listen"), Value: c.AdminListen,
			Problem: "is data_listen as well", Allowed: "another port, or port 0",
		})
	}
	return errors.Join(problems...)
}

// problem returns a problem with a field's value.
func (f *field) problem(value, source, what string) error {
	if f.secret && value != "" {
		value = "***"
	}
	return &FieldError{
		Field: f.Name, Source: source, Value: value, Problem: what, Allowed: f.Allowed(),
	}
}

type loader struct {
	c        Config
	environ  map[string]string
	problems []error
}

func environmentMap(environ []string) map[string]string {
	m := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			m[name] = value
		}
	}
	return m
}

func (l *loader) set(f *field, text, source string) {
	if err := f.set(&l.c, text); err != nil {
		l.problems = append(l.problems, f.problem(text, source, "cannot be read"))
		return
	}
	l.c.sources[f.Name] = source
}

// file reads settings from a TOML file: names at the top level, nothing nested.
func (l *loader) file(path string) {
	b, err := readLimited(path)
	if err != nil {
		l.problems = append(l.problems, fmt.Errorf("settings file: %w", err))
		return
	}
	var entries map[string]toml.Primitive
	meta, err := toml.Decode(string(b), &entries)
	if err != nil {
		source := "settings file " + path
		if pe, ok := errors.AsType[toml.ParseError](err); ok {
			err = fmt.Errorf("%s, line %d: %s", source, pe.Position.Line, pe.Message)
		} else {
			err = fmt.Errorf("%s: %w", source, err)
		}
		l.problems = append(l.problems, err)
		return
	}
	type entry struct {
		name string
		line int
		of   toml.Primitive
	}
	sorted := make([]entry, 0, len(entries))
	for name, p := range entries {
		sorted = append(sorted, entry{name, lineOf(&meta, p), p})
	}
	sort.Slice(sorted, func(a, b int) bool { return sorted[a].line < sorted[b].line })
	for _, e := range sorted {
		l.entry(&meta, e.name, e.of, fmt.Sprintf("file %s, line %d", path, e.line))
	}
}

func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%s: not a regular file of at most %v", path, Bytes(fileBytesMax))
	}
	return os.ReadFile(filepath.Clean(path))
}

// entry takes over one entry of the file.
func (l *loader) entry(meta *toml.MetaData, name string, p toml.Primitive, source string) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.Name == name })
	if i < 0 {
		l.problems = append(l.problems, &FieldError{
			Field: name, Source: source, Problem: "is no setting" + nearest(name),
		})
		return
	}
	f := &fields[i]
	var v any
	if err := meta.PrimitiveDecode(p, &v); err != nil {
		l.problems = append(l.problems, f.problem("", source, err.Error()))
		return
	}
	switch v := v.(type) {
	case string:
		if f.kind != intType {
			l.set(f, v, source)
			return
		}
	case int64:
		if f.kind == intType || f.kind == bytesType {
			l.set(f, fmt.Sprint(v), source)
			return
		}
	}
	l.problems = append(l.problems, f.problem(fmt.Sprint(v), source, "is "+tomlKind(v)+" of TOML"))
}

func tomlKind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "an array"
	}
	return "a date or time"
}

// lineProbe refuses every value, for the library puts the line into the error.
type lineProbe struct{}

var errProbe = errors.New("probe")

// UnmarshalTOML refuses the value.
func (*lineProbe) UnmarshalTOML(any) error { return errProbe }

// lineOf returns the line of an entry, 0 if it is unknown.
func lineOf(meta *toml.MetaData, p toml.Primitive) int {
	if pe, ok := errors.AsType[toml.ParseError](meta.PrimitiveDecode(p, &lineProbe{})); ok {
		return pe.Position.Line
	}
	return 0
}

// nearest returns a hint with the setting whose name is nearest, or "".
func nearest(name string) string {
	best, distance := "", 4
	for _, f := range fields {
		if d := editDistance(name, f.Name); d < distance {
			best, distance = f.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance counts the bytes to insert, delete and replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// Misspelt returns a line for each variable of environ that begins as settings
// do and is nearly one. Others are somebody else's: a cluster manager invents
// such names for each service.
func Misspelt(environ []string) []string {
	var lines []string
	for name := range environmentMap(environ) {
		setting, ok := strings.CutPrefix(name, "HEDDLE_")
		if !ok || name == fileVariable {
			continue
		}
		setting = strings.ToLower(setting)
		if slices.ContainsFunc(fields, func(f field) bool { return f.Name == setting }) {
			continue
		}
		if hint := nearest(setting); hint != "" {
			lines = append(lines, fmt.Sprintf("environment %s is no setting%s", name, hint))
		}
	}
	slices.Sort(lines)
	return lines
}
