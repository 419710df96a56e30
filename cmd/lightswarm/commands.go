package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
)

// finish gives the whole tree what each command would otherwise repeat: unknown words are errors below the root too, wrong
// values of flags are explained, and shells complete values.
func (p *program) finish(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return explainFlag(err) })
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	p.finishTree(root, root)
}

func (p *program) finishTree(root, c *cobra.Command) {
	c.SuggestionsMinimumDistance = 2
	switch {
	case c == root:
		c.RunE = p.group
	case c.Name() == "help":
		c.Args = func(_ *cobra.Command, words []string) error { return findCommand(root, words) }
	case c.HasSubCommands():
		c.DisableFlagsInUseLine = true
		c.Args = findCommand
		c.RunE = p.group
	}
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(c, f.Name) })
	completeArgument(c)
	for _, child := range c.Commands() {
		p.finishTree(root, child)
	}
}

// takes returns a check of how many arguments a command gets: at most one, which its usage line names.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) error {
		_, argument, _ := strings.Cut(c.Use, " ")
		switch {
		case len(words) < least:
			return fmt.Errorf("%s needs an argument: %s", c.CommandPath(), argument)
		case len(words) <= most:
			return nil
		case most == 0:
			return fmt.Errorf("%s takes no arguments, and %q is one", c.CommandPath(), words[0])
		}
		return fmt.Errorf("%s takes one argument, %s, and %q is another", c.CommandPath(), argument, words[most])
	}
}

// group runs a command that only has others: it helps a person, and is an error to a program, which wants a result.
func (p *program) group(c *cobra.Command, _ []string) error {
	if !p.json {
		return c.Help()
	}
	return usage(fmt.Errorf("%s with --json needs a command: %s", c.CommandPath(), strings.Join(commandsOf(c), ", ")))
}

// commandsOf are the names of the commands that people use below c.
func commandsOf(c *cobra.Command) (names []string) {
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// findCommand is an error if words name no command below c.
func findCommand(c *cobra.Command, words []string) error {
	for _, word := range words {
		next, _, err := c.Find([]string{word})
		if err != nil || next == c {
			return unknownCommand(c, word)
		}
		c = next
	}
	return nil
}

// unknownCommand says what was perhaps meant, or else what there is.
func unknownCommand(c *cobra.Command, word string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown command %q for %q", word, c.CommandPath())
	names, heading := c.SuggestionsFor(word), "Did you mean this?"
	if len(names) == 0 {
		names, heading = commandsOf(c), "It has these:"
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "\n\n%s\n\t%s\n", heading, strings.Join(names, "\n\t"))
	}
	return errors.New(b.String())
}

// wanted says what the flags of each type take.
var wanted = map[string]string{
	"bool":     "want true or false",
	"int":      "want a whole number",
	"uint32":   "want a whole number from 0 to 4294967295",
	"uint64":   "want a whole number, 0 or more",
	"float64":  "want a number",
	"duration": "want a duration such as 90s or 5m",
}

// explainFlag says of a flag's wrong value what would be right.
func explainFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want := wanted[invalid.GetFlag().Value.Type()]
	if want == "" {
		want = invalid.Unwrap().Error()
	}
	return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// completeFlag lets shells complete the values of a flag that has a few, or that names a folder.
func completeFlag(c *cobra.Command, name string) {
	values, directive := config.Choices(name), cobra.ShellCompDirectiveNoFileComp
	switch name {
	case "env":
		values = []string{calc.Name}
		if c.Name() != "pretrain" { // others take folders and files too
			directive = cobra.ShellCompDirectiveDefault
		}
	case "charter":
		directive = cobra.ShellCompDirectiveDefault
	case "data", "policy", "out", "dir", "agent-folder":
		directive = cobra.ShellCompDirectiveFilterDirs
	}
	if values == nil && directive == cobra.ShellCompDirectiveNoFileComp {
		return
	}
	if err := c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, directive)); err != nil {
		panic(err) // the flag is there, and has no other completion
	}
}

// completeArgument lets shells complete the argument of a command whose usage line names a file or a folder.
func completeArgument(c *cobra.Command) {
	_, argument, _ := strings.Cut(c.Use, " ")
	switch {
	case strings.Contains(argument, "FILE"):
		c.ValidArgsFunction = completeFirst(cobra.ShellCompDirectiveDefault)
	case strings.Contains(argument, "FOLDER") && !strings.Contains(argument, "--"):
		c.ValidArgsFunction = completeFirst(cobra.ShellCompDirectiveFilterDirs)
	}
}

// completeFirst completes the first argument with names of files, as directive says, and no other.
func completeFirst(directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(words) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, directive
	}
}
