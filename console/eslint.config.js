/** Rules of the console's sources: strict types, hooks, and which folder may use which. */
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

const noImport = (files, patterns, message) => ({
  files,
  rules: { "no-restricted-imports": ["error", { patterns: [{ group: patterns, message }] }] },
});

export default tseslint.config(
  { ignores: ["node_modules", "src/api/generated"] },
  ...tseslint.configs.strict,
  {
    files: ["src/**/*.{ts,tsx}"],
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "max-lines": ["error", 500],
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Text is text." },
        { selector: "Literal[value=/#[0-9a-fA-F]{6}/]", message: "Colours are tokens of theme/tokens.css." },
      ],
      "no-restricted-globals": ["error", { name: "fetch", message: "Only api/client.ts asks the server." }],
    },
  },
  { files: ["src/api/client.ts"], rules: { "no-restricted-globals": "off" } },
  noImport(["src/components/**"], ["**/modules/**", "**/pages/**", "**/api/**"], "components know no product"),
  noImport(["src/modules/**"], ["**/pages/**"], "imports go from pages to modules to components"),
  noImport(["src/api/**"], ["**/components/**", "**/modules/**", "**/pages/**"], "the API knows no views"),
);
