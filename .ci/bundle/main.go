// Command bundle builds the script of the demo page, host/demo/web/dist/demo.js,
// from its TypeScript sources and the npm packages that sdk/js pins, and gathers
// the licences of what it took in beside it. The same sources give the same
// bytes. With -check it writes nothing and fails if the committed files differ.
// Tests have pages of their own: -entry names another source, below the
// repository's root, and -out the file to write.
//
//	cd .ci/bundle && go run .          # build
//	cd .ci/bundle && go run . -check   # compare
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

const (
	entry    = "host/demo/web/demo.ts"
	script   = "host/demo/web/dist/demo.js"
	licences = "host/demo/web/dist/licences.txt"
	packages = "sdk/js"
)

func main() {
	root := flag.String("root", "../..", "the repository's root")
	check := flag.Bool("check", false, "compare with the committed files and write nothing")
	other := flag.String("entry", "", "build this source instead, without licences")
	out := flag.String("out", "", "where the script of -entry goes")
	flag.Parse()
	err := errors.New("-entry and -out go together, without -check")
	switch {
	case *other == "" && *out == "":
		err = run(*root, *check)
	case *other != "" && *out != "" && !*check:
		err = runOther(*root, *other, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if err := installed(filepath.Join(root, packages)); err != nil {
		return err
	}
	code, inputs, err := build(root, entry)
	if err != nil {
		return err
	}
	texts, err := gatherLicences(root, inputs)
	if err != nil {
		return err
	}
	files := []struct {
		name string
		want []byte
	}{{script, code}, {licences, texts}}
	var differs []error
	for _, f := range files {
		path := filepath.Join(root, f.name)
		if check {
			if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, f.want) {
				differs = append(differs,
					fmt.Errorf("%s is not what its sources give; run `make bundle`", f.name))
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.want, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes\n", f.name, len(f.want))
	}
	return errors.Join(differs...)
}

// runOther builds a page that is not for users.
func runOther(root, source, out string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if err := installed(filepath.Join(root, packages)); err != nil {
		return err
	}
	code, _, err := build(root, source)
	if err != nil {
		return err
	}
	return os.WriteFile(out, code, 0o644)
}

// installed makes sure that the packages are there as the lock file has them:
// npm keeps a copy of it in node_modules.
func installed(dir string) error {
	same, err := sameVersions(dir)
	if err != nil || same {
		return err
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm ci in %s: %w", packages, err)
	}
	return nil
}

// build returns the script of a source and the paths of all files that went into it,
// relative to root.
func build(root, source string) (code []byte, inputs []string, err error) {
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:     root,
		EntryPoints:       []string{source},
		Outfile:           script,
		Bundle:            true,
		Write:             false,
		Format:            api.FormatESModule,
		Platform:          api.PlatformBrowser,
		Target:            api.ES2022,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		// Not the sources' own comments: licences.txt has the whole texts.
		LegalComments: api.LegalCommentsNone,
		Charset:       api.CharsetUTF8,
		Metafile:      true,
		LogLevel:      api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return nil, nil, fmt.Errorf("%d errors from esbuild, the first: %s",
			len(result.Errors), result.Errors[0].Text)
	}
	inputs, err = inputsOf(result.Metafile)
	if err != nil {
		return nil, nil, err
	}
	banner := "// Built by .ci/bundle from host/demo/web and sdk/js; licences of its contents:\n" +
		"// licences.txt\n"
	return append([]byte(banner), result.OutputFiles[0].Contents...), inputs, nil
}
