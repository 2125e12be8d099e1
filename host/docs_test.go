package host_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host"
)

// The tests of this file hold the manual to the code: links lead somewhere, every
// metric is explained, and every command line can be typed. The tutorial is run
// by docs_tutorial_test.go.

// treeRoot is the top of the repository, seen from this package.
const treeRoot = ".."

// block is a fenced block of a page.
type block struct {
	language string // the first word behind the fence
	info     string // the rest of that line
	text     string // with a line end behind each line
	line     int    // of its first line, from 1
}

// readPage returns a page's text without its fenced blocks, line by line, and
// the blocks.
func readPage(t *testing.T, name string) (prose []string, blocks []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(treeRoot, name))
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			language, info, _ := strings.Cut(fence, " ")
			open = &block{language: language, info: info, line: i + 2}
			prose = append(prose, "")
		case isFence:
			blocks = append(blocks, *open)
			open = nil
			prose = append(prose, "")
		case open != nil:
			open.text += line + "\n"
			prose = append(prose, "")
		default:
			prose = append(prose, line)
		}
	}
	if open != nil {
		t.Errorf("%s:%d: this block has no end", name, open.line)
	}
	return prose, blocks
}

// manualPages returns the names of all pages of the project, seen from its top.
func manualPages(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(treeRoot), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "docs/README.md") {
		t.Fatalf("the manual is not among the pages: %v", names)
	}
	return names
}

var (
	inlineCode   = regexp.MustCompile("`[^`]*`")
	linkPattern  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	otherScheme  = regexp.MustCompile(`^[a-z]+:`)
	headingStart = regexp.MustCompile(`^#{1,6} +`)
)

func TestManualLinks(t *testing.T) {
	for _, page := range manualPages(t) {
		prose, _ := readPage(t, page)
		for i, line := range prose {
			line = inlineCode.ReplaceAllStringFunc(line, func(code string) string {
				return strings.Repeat("x", len(code)) // the text of a link may be code
			})
			for _, m := range linkPattern.FindAllStringSubmatch(line, -1) {
				if otherScheme.MatchString(m[1]) {
					continue
				}
				if problem := checkLink(t, page, m[1]); problem != "" {
					t.Errorf("%s:%d: link %s: %s", page, i+1, m[1], problem)
				}
			}
		}
	}
}

// checkLink returns what is wrong with a relative link, "" if nothing.
func checkLink(t *testing.T, page, link string) string {
	path, fragment, _ := strings.Cut(link, "#")
	target := page
	if path != "" {
		target = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
	}
	if strings.HasPrefix(target, "../") {
		return "leads out of the project"
	}
	if _, err := os.Stat(filepath.Join(treeRoot, target)); err != nil {
		return "there is no such file"
	}
	if fragment == "" || !strings.HasSuffix(target, ".md") {
		return ""
	}
	prose, _ := readPage(t, target)
	for _, line := range prose {
		if headingStart.MatchString(line) &&
			anchor(headingStart.ReplaceAllString(line, "")) == fragment {
			return ""
		}
	}
	return "no heading of that page has this anchor"
}

// anchor is the fragment that a heading gets on a page.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

var (
	metricShown = regexp.MustCompile(`(?m)^# TYPE (heddle_\w+) `)
	metricNamed = regexp.MustCompile(`heddle_[a-z0-9_]+`)
)

func TestManualNamesEveryMetric(t *testing.T) {
	s := startServer(t)
	status, body := s.call("GET", "/metrics", "", "")
	if status != 200 {
		t.Fatalf("status %d: %s", status, body)
	}
	shown := map[string]bool{}
	for _, m := range metricShown.FindAllStringSubmatch(body, -1) {
		shown[m[1]] = true
	}
	if len(shown) < 10 {
		t.Fatalf("only %d metrics are shown:\n%s", len(shown), body)
	}
	const page = "docs/operations.md"
	text, err := os.ReadFile(filepath.Join(treeRoot, page))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range metricNamed.FindAllString(string(text), -1) {
		for _, part := range []string{"_bucket", "_sum", "_count"} { // of histograms
			if base, ok := strings.CutSuffix(name, part); ok && shown[base] {
				name = base
			}
		}
		named[name] = true
	}
	for name := range shown {
		if !named[name] {
			t.Errorf("%s does not explain %s, which /metrics shows", page, name)
		}
	}
	for name := range named {
		if !shown[name] {
			t.Errorf("%s names %s, which /metrics does not show", page, name)
		}
	}
}

var (
	settingDefault = regexp.MustCompile("(?s)\n### (\\w+)\n[^#]*?\n- default: `([^`]*)`")
	limitRow       = regexp.MustCompile("(?m)^\\|[^|]*\\| ([^|]*) \\| `(\\w+)` \\|")
)

// The limits that the manual names have the defaults that docs/config.md has
// from the code, and no limit is left out.
func TestManualLimits(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(treeRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	settings := read("docs/config.md")
	from := strings.Index(settings, "\n## Limits of the server")
	to := strings.Index(settings, "\n## Commands that talk")
	if from < 0 || to < from {
		t.Fatal("docs/config.md has other headings now")
	}
	manual := read("docs/operations.md")
	defaults := map[string]string{}
	for _, m := range settingDefault.FindAllStringSubmatch(settings[from:to], -1) {
		defaults[m[1]] = m[2]
		if !strings.Contains(manual, m[1]) {
			t.Errorf("docs/operations.md does not name the limit %s", m[1])
		}
	}
	rows := limitRow.FindAllStringSubmatch(manual, -1)
	if len(rows) < 10 || len(defaults) < 10 {
		t.Fatalf("%d limits and %d settings were found", len(rows), len(defaults))
	}
	for _, m := range rows {
		named := strings.NewReplacer(",", "", " ", "").Replace(m[1])
		if want := defaults[m[2]]; named != want {
			t.Errorf("docs/operations.md: the default of %s is %q, and not %q", m[2], want, m[1])
		}
	}
}

func TestManualCommandLines(t *testing.T) {
	seen := 0
	for _, page := range manualPages(t) {
		_, blocks := readPage(t, page)
		for _, b := range blocks {
			if !slices.Contains([]string{"", "sh", "bash", "console", "text"}, b.language) {
				continue
			}
			for _, args := range heddleCommands(b.text) {
				seen++
				if err := checkCommandLine(t, args); err != nil {
					t.Errorf("%s:%d: heddle %s: %v", page, b.line, strings.Join(args, " "), err)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// checkCommandLine reports whether the binary takes a command line, without
// running it.
func checkCommandLine(t *testing.T, args []string) error {
	if len(args) > 0 && args[0] == "bench" {
		// The benches are not the host's: the binary itself is asked. It looks at
		// all flags before it shows the help.
		ask := exec.CommandContext(t.Context(), binary(t), append(args, "--help")...)
		if out, err := ask.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	root := &cobra.Command{Use: "heddle"}
	root.AddCommand(host.Commands()...)
	root.SetOut(io.Discard)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(host.Arguments(args))
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.Flags().Changed("help") {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// builtBinary is the path of the binary once it was built.
var builtBinary string

// binary builds heddle once for all tests that ask, and returns its path.
func binary(t *testing.T) string {
	t.Helper()
	if builtBinary == "" {
		path := filepath.Join(t.TempDir(), "heddle")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
		build.Dir = treeRoot
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		t.Cleanup(func() { builtBinary = "" }) // the directory goes with the test
		builtBinary = path
	}
	return builtBinary
}

// The manual's whole Go programs compile.
func TestManualGoPrograms(t *testing.T) {
	seen := 0
	for _, page := range manualPages(t) {
		_, blocks := readPage(t, page)
		for _, b := range blocks {
			if b.language != "go" || !strings.Contains(b.text, "\nfunc main() {") {
				continue
			}
			seen++
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			vet := exec.CommandContext(t.Context(), "go", "vet", file)
			vet.Dir = treeRoot // whose module it imports
			if out, err := vet.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v\n%s", page, b.line, err, out)
			}
		}
	}
	if seen == 0 {
		t.Error("no Go program was found")
	}
}

// What the manual says is missing is not what the language page tells how to use.
func TestManualMissing(t *testing.T) {
	missing := regexp.MustCompile(
		`(?s)(?:and has no|Not there yet:|## Not there yet)(.*?)(?:\n\n[^-\n]|$)`)
	is := regexp.MustCompile(`negation|aggregate|action|arithmetic|recursion`)
	for _, name := range []string{"README.md", "docs/ARCHITECTURE.md", "docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join(treeRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		told := missing.FindAllSubmatch(text, -1)
		if len(told) == 0 {
			t.Errorf("%s does not say what is missing", name)
		}
		for _, m := range told {
			if word := is.Find(m[1]); word != nil {
				t.Errorf("%s says that there is no %s", name, word)
			}
		}
	}
}
