package main

import "github.com/spotter-dev/spotter/internal/cli/clitest"

// spotterLab is the program under test.
var spotterLab = clitest.Program(commands)

// call runs the program, and wrongCallIs runs it with arguments that it must refuse.
var call, wrongCallIs = spotterLab.Call, spotterLab.WrongCallIs

var file, bundle, withONNX, without = clitest.File, clitest.Bundle, clitest.WithONNX, clitest.WithoutONNX
