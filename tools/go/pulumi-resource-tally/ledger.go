package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi-go-provider/infer"
)

// Ledger is a file in the folder of a test. Nobody can guess its id, but it is found by the token that
// it was made with.
type Ledger struct{}

// LedgerArgs are what a program says of it.
type LedgerArgs struct {
	Title       string `pulumi:"title"`
	ClientToken string `pulumi:"clientToken"`
}

// LedgerState is what becomes of it.
type LedgerState struct {
	LedgerArgs
	Pages int `pulumi:"pages"`
}

func inWorld(name string) string {
	return filepath.Join(os.Getenv("PARITY_WORLD"), name)
}

func ledgerFile(id string) string {
	return filepath.Join(inWorld("ledgers"), id+".json")
}

// Create makes it. Where a test asks for that, the plugin ends before it tells anybody.
func (Ledger) Create(_ context.Context, req infer.CreateRequest[LedgerArgs]) (infer.CreateResponse[LedgerState], error) {
	made := infer.CreateResponse[LedgerState]{Output: LedgerState{LedgerArgs: req.Inputs, Pages: 1}}
	if req.DryRun {
		return made, nil
	}
	made.ID = "ledger-" + rand.Text()
	text, err := json.Marshal(made.Output)
	if err != nil {
		return made, err
	}
	if err := os.MkdirAll(inWorld("ledgers"), 0o755); err != nil {
		return made, err
	}
	if err := os.WriteFile(ledgerFile(made.ID), text, 0o644); err != nil {
		return made, err
	}
	if os.Remove(inWorld("dies")) == nil {
		os.Exit(1)
	}
	return made, nil
}

// Read finds it by its id or by its token.
func (Ledger) Read(_ context.Context, req infer.ReadRequest[LedgerArgs, LedgerState]) (infer.ReadResponse[LedgerArgs, LedgerState], error) {
	none := infer.ReadResponse[LedgerArgs, LedgerState]{}
	files, err := os.ReadDir(inWorld("ledgers"))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	for _, file := range files {
		id := strings.TrimSuffix(file.Name(), ".json")
		var state LedgerState
		text, err := os.ReadFile(ledgerFile(id))
		if err == nil {
			err = json.Unmarshal(text, &state)
		}
		if err != nil {
			return none, err
		}
		if id == req.ID || state.ClientToken == req.ID {
			return infer.ReadResponse[LedgerArgs, LedgerState]{ID: id, Inputs: state.LedgerArgs, State: state}, nil
		}
	}
	return none, err
}

// Delete removes it.
func (Ledger) Delete(_ context.Context, req infer.DeleteRequest[LedgerState]) (infer.DeleteResponse, error) {
	return infer.DeleteResponse{}, os.Remove(ledgerFile(req.ID))
}
