// A Node language host for tests of the official command line.
//
// It is not the one that the official command line ships: that module is not offered by every proxy,
// and the published versions are too old for hooks and transforms. This one speaks the same protocol
// against the same SDK and does only what tests need: it lists the packages in `node_modules`, runs a
// program and runs a plugin in source form. A program talks to the engine's monitor itself; nothing
// stands in between. It installs nothing, generates nothing and debugs nothing.
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
	"strconv"
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
	engine string
}

func main() {
	// The command line passes these to every host; this one has no use for them.
	flag.String("tracing", "", "unused")
	flag.String("root", "", "unused")
	flag.Parse()
	served := &host{engine: flag.Arg(0)}
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

// What a package says of itself in its package.json.
type nodePackage struct {
	Name, Version string
	Pulumi        struct {
		Resource              bool
		Name, Version, Server string
	}
}

func (h *host) GetRequiredPackages(_ context.Context, request *pulumirpc.GetRequiredPackagesRequest) (*pulumirpc.GetRequiredPackagesResponse, error) {
	found := &pulumirpc.GetRequiredPackagesResponse{}
	modules := filepath.Join(request.Info.ProgramDirectory, "node_modules")
	for _, pattern := range []string{"*", filepath.Join("@*", "*")} {
		files, err := filepath.Glob(filepath.Join(modules, pattern, "package.json"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			var described nodePackage
			if err := json.Unmarshal(text, &described); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if described.Pulumi.Resource {
				found.Packages = append(found.Packages, described.dependency())
			}
		}
	}
	return found, nil
}

func (described nodePackage) dependency() *pulumirpc.PackageDependency {
	name, version := described.Pulumi.Name, described.Pulumi.Version
	if name == "" {
		name = described.Name[strings.LastIndex(described.Name, "/")+1:]
	}
	if version == "" {
		version = described.Version
	}
	return &pulumirpc.PackageDependency{
		Name: name, Kind: "resource", Version: "v" + strings.TrimPrefix(version, "v"), Server: described.Pulumi.Server,
	}
}

func (h *host) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	launcher, err := launcherOf(request.Info.ProgramDirectory, "run")
	if err != nil {
		return nil, err
	}
	// The SDK reads configuration under names that have `config` in the middle.
	config := map[string]string{}
	for key, value := range request.Config {
		if namespace, name, ok := strings.Cut(key, ":"); ok {
			key = namespace + ":config:" + name
		}
		config[key] = value
	}
	values, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	secrets, err := json.Marshal(append([]string{}, request.ConfigSecretKeys...))
	if err != nil {
		return nil, err
	}
	arguments := []string{
		launcher, "--monitor", request.MonitorAddress, "--engine", h.engine,
		"--organization", request.Organization, "--project", request.Project,
		"--root-directory", request.Info.RootDirectory, "--stack", request.Stack,
		"--pwd", request.Pwd, "--parallel", strconv.Itoa(int(request.Parallel)),
	}
	if request.DryRun {
		arguments = append(arguments, "--dry-run")
	}
	entry := request.Info.EntryPoint
	if entry == "" {
		entry = "."
	}
	arguments = append(append(arguments, entry), request.Args...)
	command := exec.CommandContext(ctx, "node", arguments...)
	command.Dir = request.Pwd
	// The engine shows what a host prints.
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "PULUMI_CONFIG="+string(values), "PULUMI_CONFIG_SECRET_KEYS="+string(secrets))
	if typescript := request.Info.Options.GetFields()["typescript"]; typescript == nil || typescript.GetBoolValue() {
		command.Env = append(command.Env, "PULUMI_NODEJS_TYPESCRIPT=true")
	}
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

func (h *host) RunPlugin(request *pulumirpc.RunPluginRequest, stream grpc.ServerStreamingServer[pulumirpc.RunPluginResponse]) error {
	name, folder := "run-plugin", request.Info.ProgramDirectory
	if request.Kind == "analyzer" {
		name = "run-policy-pack"
	}
	launcher, err := launcherOf(folder, name)
	if err != nil {
		return err
	}
	// A provider's folder comes before its arguments, that of a policy pack after them.
	arguments := append([]string{launcher, folder}, request.Args...)
	if request.Kind == "analyzer" {
		arguments = append(append([]string{launcher}, request.Args...), folder)
	}
	command := exec.CommandContext(stream.Context(), "node", arguments...)
	command.Dir = request.Pwd
	if request.Kind == "analyzer" {
		// The policy SDK reads the version of a pack from the folder it runs in.
		command.Dir = folder
	}
	command.Env = append(append(os.Environ(), request.Env...), "PULUMI_NODEJS_TYPESCRIPT=true")
	command.Stdout = sender(func(text []byte) *pulumirpc.RunPluginResponse {
		return &pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Stdout{Stdout: text}}
	}, stream)
	command.Stderr = sender(func(text []byte) *pulumirpc.RunPluginResponse {
		return &pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Stderr{Stderr: text}}
	}, stream)
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status := &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(exit.ExitCode())}
		return stream.Send(&pulumirpc.RunPluginResponse{Output: status})
	}
	return err
}

// The file of the SDK that starts programs or plugins, as the program itself would find it.
func launcherOf(folder, name string) (string, error) {
	resolve := exec.Command("node", "-p", "require.resolve('@pulumi/pulumi/cmd/"+name+"')")
	resolve.Dir = folder
	resolve.Stderr = os.Stderr
	file, err := resolve.Output()
	if err != nil {
		return "", fmt.Errorf("%s finds no Node SDK: %w", folder, err)
	}
	return strings.TrimSpace(string(file)), nil
}
