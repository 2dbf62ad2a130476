/** Text to take along: an id, a command. */
import { Check, Copy as CopyIcon } from "lucide-react";
import { useState } from "react";

export function useCopy(): [boolean, (text: string) => void] {
  const [copied, setCopied] = useState(false);
  const copy = (text: string) => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return [copied, copy];
}

export function CopyId({ text, label }: { text: string; label: string }) {
  const [copied, copy] = useCopy();
  const Icon = copied ? Check : CopyIcon;
  return (
    <button type="button" className="tag mono" onClick={() => copy(text)} aria-label={`Copy ${label}`} title={`Copy ${label}`}>
      {label}
      <Icon className="s" aria-hidden width={11} height={11} />
    </button>
  );
}

/** The same thing on the command line. */
export function CommandLine({ command }: { command: string }) {
  const [copied, copy] = useCopy();
  return (
    <div className="code row">
      <code className="mono grow">{command}</code>
      <button type="button" className="btn sm ghost" onClick={() => copy(command)}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
