// A provider plugin written with Pulumi's own Go provider SDK. In parity tests it stands for the
// plugins that others ship: its protocol is whatever that SDK speaks, not what our own providers do.
// Everything it says follows from its inputs, so that two engines get the same answers.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	provider, err := infer.NewProviderBuilder().
		WithResources(infer.Resource(Counter{}), infer.Resource(Ledger{})).
		WithComponents(infer.ComponentF(NewPair)).
		WithFunctions(infer.Function(Sum{})).
		WithConfig(infer.Config(Config{})).
		Build()
	if err == nil {
		err = provider.Run(context.Background(), "tally", "0.1.0")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Config is how a provider of this package is configured.
type Config struct {
	Prefix string `pulumi:"prefix,optional"`
}

// Counter is an object that exists only in the state.
type Counter struct{}

// CounterArgs are what a program says of it.
type CounterArgs struct {
	Start int               `pulumi:"start"`
	Unit  string            `pulumi:"unit"`
	Tags  map[string]string `pulumi:"tags,optional"`
	Token *string           `pulumi:"token,optional" provider:"secret"`
}

// CounterState is what becomes of it.
type CounterState struct {
	CounterArgs
	Shown  string `pulumi:"shown"`
	Writes int    `pulumi:"writes"`
}

func stateOf(ctx context.Context, args CounterArgs, writes int) CounterState {
	prefix := infer.GetConfig[Config](ctx).Prefix
	shown := fmt.Sprintf("%s%d %s", prefix, args.Start, args.Unit)
	return CounterState{CounterArgs: args, Shown: shown, Writes: writes}
}

// Create gives it an id that its name alone decides.
func (Counter) Create(ctx context.Context, req infer.CreateRequest[CounterArgs]) (infer.CreateResponse[CounterState], error) {
	if req.Inputs.Start < 0 && !req.DryRun {
		return infer.CreateResponse[CounterState]{}, fmt.Errorf("%s cannot start below zero", req.Name)
	}
	return infer.CreateResponse[CounterState]{ID: "counter-" + req.Name, Output: stateOf(ctx, req.Inputs, 1)}, nil
}

// Diff says in detail what differs; another unit is another object.
func (Counter) Diff(_ context.Context, req infer.DiffRequest[CounterArgs, CounterState]) (infer.DiffResponse, error) {
	diff := map[string]p.PropertyDiff{}
	if req.Inputs.Start != req.State.Start {
		diff["start"] = p.PropertyDiff{Kind: p.Update, InputDiff: true}
	}
	if req.Inputs.Unit != req.State.Unit {
		diff["unit"] = p.PropertyDiff{Kind: p.UpdateReplace, InputDiff: true}
	}
	if fmt.Sprint(req.Inputs.Tags) != fmt.Sprint(req.State.Tags) {
		diff["tags"] = p.PropertyDiff{Kind: p.Update, InputDiff: true}
	}
	return infer.DiffResponse{HasChanges: len(diff) > 0, DetailedDiff: diff, DeleteBeforeReplace: true}, nil
}

// Update counts how often it was written.
func (Counter) Update(ctx context.Context, req infer.UpdateRequest[CounterArgs, CounterState]) (infer.UpdateResponse[CounterState], error) {
	return infer.UpdateResponse[CounterState]{Output: stateOf(ctx, req.Inputs, req.State.Writes+1)}, nil
}

// Delete has nothing to remove.
func (Counter) Delete(context.Context, infer.DeleteRequest[CounterState]) (infer.DeleteResponse, error) {
	return infer.DeleteResponse{}, nil
}

// Sum is a function of the package.
type Sum struct{}

// SumArgs are what is added up.
type SumArgs struct {
	Numbers []int `pulumi:"numbers"`
}

// SumResult is what it amounts to.
type SumResult struct {
	Total int    `pulumi:"total"`
	Text  string `pulumi:"text"`
}

// Invoke adds up.
func (Sum) Invoke(_ context.Context, req infer.FunctionRequest[SumArgs]) (infer.FunctionResponse[SumResult], error) {
	total := 0
	for _, number := range req.Input.Numbers {
		total += number
	}
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(req.Input.Numbers), " ", "+"), "[]")
	return infer.FunctionResponse[SumResult]{Output: SumResult{Total: total, Text: text}}, nil
}

// Pair is a component whose children the plugin's own process registers, with Pulumi's Go SDK.
type Pair struct {
	pulumi.ResourceState
	Shown pulumi.StringOutput `pulumi:"shown"`
}

// PairArgs are what a program says of it.
type PairArgs struct {
	Unit pulumi.StringInput `pulumi:"unit"`
}

type counterResource struct {
	pulumi.CustomResourceState
	Shown pulumi.StringOutput `pulumi:"shown"`
}

// NewPair registers two counters, the second built on the first.
func NewPair(ctx *pulumi.Context, name string, args PairArgs, opts ...pulumi.ResourceOption) (*Pair, error) {
	pair := &Pair{}
	if err := ctx.RegisterComponentResource("tally:index:Pair", name, pair, opts...); err != nil {
		return nil, err
	}
	first, err := newCounter(ctx, name+"-first", 1, args.Unit, pair)
	if err != nil {
		return nil, err
	}
	second, err := newCounter(ctx, name+"-second", 2, first.Shown, pair)
	if err != nil {
		return nil, err
	}
	pair.Shown = pulumi.Sprintf("%s, %s", first.Shown, second.Shown)
	return pair, ctx.RegisterResourceOutputs(pair, pulumi.Map{"shown": pair.Shown})
}

func newCounter(ctx *pulumi.Context, name string, start int, unit pulumi.StringInput, parent pulumi.Resource) (*counterResource, error) {
	made := &counterResource{}
	inputs := pulumi.Map{"start": pulumi.Int(start), "unit": unit}
	err := ctx.RegisterResource("tally:index:Counter", name, inputs, made, pulumi.Parent(parent), pulumi.Version("0.1.0"))
	return made, err
}
