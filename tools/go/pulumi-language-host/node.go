// Programs and plugins in Node.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type node struct{}

// What a package says of itself in its package.json.
type nodePackage struct {
	Name, Version string
	Pulumi        struct {
		Resource              bool
		Name, Version, Server string
	}
}

func (node) packages(info *pulumirpc.ProgramInfo) ([]*pulumirpc.PackageDependency, error) {
	var found []*pulumirpc.PackageDependency
	modules := filepath.Join(info.ProgramDirectory, "node_modules")
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
				found = append(found, described.dependency())
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
	return dependency(name, version, described.Pulumi.Server)
}

// The SDK reads configuration under names that have `config` in the middle.
func (node) key(key string) string {
	if namespace, name, ok := strings.Cut(key, ":"); ok {
		return namespace + ":config:" + name
	}
	return key
}

func (node) program(ctx context.Context, request *pulumirpc.RunRequest, engine string) (*exec.Cmd, error) {
	launcher, err := launcherOf(request.Info.ProgramDirectory, "run")
	if err != nil {
		return nil, err
	}
	arguments := []string{
		launcher, "--monitor", request.MonitorAddress, "--engine", engine,
		"--organization", request.Organization, "--project", request.Project,
		"--root-directory", request.Info.RootDirectory, "--stack", request.Stack,
		"--pwd", request.Pwd, "--parallel", strconv.Itoa(int(request.Parallel)),
	}
	if request.DryRun {
		arguments = append(arguments, "--dry-run")
	}
	arguments = append(append(arguments, entryPoint(request.Info)), request.Args...)
	command := exec.CommandContext(ctx, "node", arguments...)
	command.Env = os.Environ()
	if typescript := request.Info.Options.GetFields()["typescript"]; typescript == nil || typescript.GetBoolValue() {
		command.Env = append(command.Env, "PULUMI_NODEJS_TYPESCRIPT=true")
	}
	return command, nil
}

func (h *host) RunPlugin(request *pulumirpc.RunPluginRequest, stream grpc.ServerStreamingServer[pulumirpc.RunPluginResponse]) error {
	if _, ok := h.language.(node); !ok {
		return status.Error(codes.Unimplemented, "only plugins in Node run from source here")
	}
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
	if request.Kind == "analyzer" {
		err = runPack(stream.Context(), command)
	} else {
		err = command.Run()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(exit.ExitCode())}
		return stream.Send(&pulumirpc.RunPluginResponse{Output: code})
	}
	return err
}

// Policy packs read from their environment what the engine says only to a pack that runs. So the SDK's
// own proxy answers in their place until it is said, as in the official host.
func runPack(ctx context.Context, command *exec.Cmd) error {
	proxy, output, err := sdk.NewPolicyProxy(ctx, command.Stdout)
	if err != nil {
		return err
	}
	command.Stdout = output
	said, err := proxy.AwaitConfiguration(ctx)
	if err != nil {
		return err
	}
	if said != nil {
		config, err := json.Marshal(said.Config)
		if err != nil {
			return err
		}
		command.Env = append(command.Env,
			"PULUMI_NODEJS_ORGANIZATION="+said.Organization, "PULUMI_NODEJS_PROJECT="+said.Project,
			"PULUMI_NODEJS_STACK="+said.Stack, "PULUMI_NODEJS_DRY_RUN="+strconv.FormatBool(said.DryRun),
			"PULUMI_CONFIG="+string(config))
	}
	if err := command.Start(); err != nil {
		return err
	}
	return proxy.Attach(ctx, command)
}

// The file of the SDK that starts programs or plugins, as the program itself would find it: from where
// it really is, if the folder is a link.
func launcherOf(folder, name string) (string, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", err
	}
	for above := real; ; above = filepath.Dir(above) {
		launcher := filepath.Join(above, "node_modules", "@pulumi", "pulumi", "cmd", name, "index.js")
		if _, err := os.Stat(launcher); err == nil {
			return launcher, nil
		}
		if above == filepath.Dir(above) {
			return "", fmt.Errorf("%s finds no Node SDK", folder)
		}
	}
}
