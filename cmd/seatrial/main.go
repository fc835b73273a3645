// Command seatrial sends production-shaped load at an environment and answers with a verdict.
package main

import (
	"os"

	"seatrial/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.Process{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Exit: os.Exit,
	}))
}
