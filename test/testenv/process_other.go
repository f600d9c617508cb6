//go:build !unix

package testenv

import (
	"errors"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func (e *Env) signal(string, bool) error { return errors.New("needs signals of Unix") }

func (e *Env) kill(string) ([]string, error) { return nil, errors.New("needs signals of Unix") }
