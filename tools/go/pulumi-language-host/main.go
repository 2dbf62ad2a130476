// Language hosts for Node and Python, for tests of the official command line.
//
// They are not the ones that the official command line ships: those modules are not offered by every
// proxy, and the published versions are too old for hooks and transforms. These speak the same protocol
// against the same SDKs and do only what tests need: they list the packages of a program, run a program
// and, in Node, run a plugin in source form. A program talks to the engine's monitor itself; nothing
// stands in between. They install nothing, generate nothing and debug nothing.
//
// There is one binary, which is the host of the language that its name ends with.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The status with which the SDK ends a program that has told its errors already.
const reportedByProgram = 32

type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	language language
	engine   string
}

// What differs between languages.
type language interface {
	// The packages that a program has and that have plugins.
	packages(info *pulumirpc.ProgramInfo) ([]*pulumirpc.PackageDependency, error)
	// The process of a program, without its configuration.
	program(ctx context.Context, request *pulumirpc.RunRequest, engine string) (*exec.Cmd, error)
	// The key under which the SDK reads a value of the configuration.
	key(key string) string
}

func main() {
	// The command line passes these to every host; this one has no use for them.
	flag.String("tracing", "", "unused")
	flag.String("root", "", "unused")
	flag.Parse()
	var spoken language = node{}
	if strings.HasSuffix(filepath.Base(os.Args[0]), "python") {
		spoken = python{}
	}
	served := &host{engine: flag.Arg(0), language: spoken}
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{Init: func(server *grpc.Server) error {
		pulumirpc.RegisterLanguageRuntimeServer(server, served)
		return nil
	}})
	if err == nil {
		fmt.Printf("%d\n", handle.Port)
		err = <-handle.Done
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (h *host) Handshake(_ context.Context, request *pulumirpc.LanguageHandshakeRequest) (*pulumirpc.LanguageHandshakeResponse, error) {
	h.engine = request.EngineAddress
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "3.258.0"}, nil
}

func (h *host) GetRequiredPackages(_ context.Context, request *pulumirpc.GetRequiredPackagesRequest) (*pulumirpc.GetRequiredPackagesResponse, error) {
	found, err := h.language.packages(request.Info)
	return &pulumirpc.GetRequiredPackagesResponse{Packages: found}, err
}

func (h *host) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	config := map[string]string{}
	for key, value := range request.Config {
		config[h.language.key(key)] = value
	}
	values, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	secrets, err := json.Marshal(append([]string{}, request.ConfigSecretKeys...))
	if err != nil {
		return nil, err
	}
	command, err := h.language.program(ctx, request, h.engine)
	if err != nil {
		return nil, err
	}
	command.Dir = request.Pwd
	// The engine shows what a host prints.
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(command.Env, "PULUMI_CONFIG="+string(values), "PULUMI_CONFIG_SECRET_KEYS="+string(secrets))
	err = command.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == reportedByProgram:
		return &pulumirpc.RunResponse{Bail: true}, nil
	case err != nil:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program ended: %v", err)}, nil
	}
	return &pulumirpc.RunResponse{}, nil
}

func entryPoint(info *pulumirpc.ProgramInfo) string {
	if info.EntryPoint == "" {
		return "."
	}
	return info.EntryPoint
}

func dependency(name, version, server string) *pulumirpc.PackageDependency {
	return &pulumirpc.PackageDependency{
		Name: name, Kind: "resource", Version: "v" + strings.TrimPrefix(version, "v"), Server: server,
	}
}
