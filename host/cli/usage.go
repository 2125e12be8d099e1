package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Strict makes a wrong command line, of root or of any command below it, an
// *Error with ExitUsage that shows a right one. It is called once, when all
// commands are there. Commands that only hold others refuse a name that they do
// not know instead of printing their help.
func Strict(root *cobra.Command) {
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, err.Error())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	strict(root)
}

func strict(c *cobra.Command) {
	for _, below := range c.Commands() {
		strict(below)
	}
	if c.HasSubCommands() && !c.Runnable() {
		c.Args, c.DisableFlagsInUseLine, c.RunE = cobra.ArbitraryArgs, true, group
		return
	}
	check := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(cmd, args)
		if _, ours := errors.AsType[*Error](err); err == nil || ours {
			return err
		}
		return usageError(cmd, fmt.Sprintf("%s does not take these arguments: %s",
			cmd.CommandPath(), strings.Join(args, " ")))
	}
}

// group is what a command does that only holds others.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return usageError(cmd, text)
}
