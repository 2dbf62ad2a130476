// Programs in Python.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

type python struct{}

// What a package says of its plugin in pulumi-plugin.json.
type pythonPlugin struct {
	Resource              bool
	Name, Version, Server string
}

func (python) packages(info *pulumirpc.ProgramInfo) ([]*pulumirpc.PackageDependency, error) {
	environment := environmentOf(info)
	if environment == "" {
		return nil, nil
	}
	libraries := filepath.Join(environment, "lib", "python*", "site-packages")
	files, err := filepath.Glob(filepath.Join(libraries, "pulumi_*", "pulumi-plugin.json"))
	if err != nil {
		return nil, err
	}
	var found []*pulumirpc.PackageDependency
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var described pythonPlugin
		if err := json.Unmarshal(text, &described); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		folder := filepath.Dir(file)
		version := described.Version
		if version == "" {
			version = installedVersion(folder)
		}
		if described.Resource && version != "" {
			name := described.Name
			if name == "" {
				name = strings.TrimPrefix(filepath.Base(folder), "pulumi_")
			}
			found = append(found, dependency(name, version, described.Server))
		}
	}
	return found, nil
}

// The 1.2.3 of the folder pulumi_name-1.2.3.dist-info beside the package.
func installedVersion(folder string) string {
	notes, err := filepath.Glob(folder + "-*.dist-info")
	if err != nil || len(notes) != 1 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(notes[0], folder+"-"), ".dist-info")
}

func (python) key(key string) string {
	return key
}

func (python) program(ctx context.Context, request *pulumirpc.RunRequest, engine string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// The SDK's own launcher is beside the hosts.
	arguments := []string{
		filepath.Join(filepath.Dir(self), "pulumi-language-python-exec"),
		"--monitor", request.MonitorAddress, "--engine", engine,
		"--organization", request.Organization, "--project", request.Project,
		"--root_directory", request.Info.RootDirectory, "--stack", request.Stack,
		"--pwd", request.Pwd, "--dry_run", strconv.FormatBool(request.DryRun),
		"--parallel", strconv.Itoa(int(request.Parallel)),
	}
	arguments = append(append(arguments, entryPoint(request.Info)), request.Args...)
	interpreter := "python3"
	if environment := environmentOf(request.Info); environment != "" {
		interpreter = filepath.Join(environment, "bin", "python")
	}
	command := exec.CommandContext(ctx, interpreter, arguments...)
	command.Env = os.Environ()
	return command, nil
}

// The virtual environment that the project asks for.
func environmentOf(info *pulumirpc.ProgramInfo) string {
	environment := info.Options.GetFields()["virtualenv"].GetStringValue()
	if environment == "" || filepath.IsAbs(environment) {
		return environment
	}
	return filepath.Join(info.RootDirectory, environment)
}
