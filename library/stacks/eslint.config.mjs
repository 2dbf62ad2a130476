import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/node_modules/**", "**/*.mjs"] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      eqeqeq: "error",
      // What a provider is about to take away fails on the day that it does.
      "@typescript-eslint/no-deprecated": "error",
      "@typescript-eslint/explicit-function-return-type": ["error", { allowExpressions: true }],
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-require-imports": "error",
      // A program that ends the process takes its error message with it. Throw instead.
      "no-restricted-properties": ["error", { object: "process", property: "exit" }],
      "no-restricted-syntax": [
        "error",
        {
          selector: "CallExpression[callee.property.name='then']",
          message:
            "use an Output and apply(), or await: a callback may run after the program ended",
        },
      ],
    },
  },
  {
    // What a mock recorded has the shape of whichever resource it is; a test that reads a property
    // that is not there fails by itself.
    files: ["*/tests/**/*.ts", "shared/testing/**/*.ts"],
    rules: {
      "@typescript-eslint/no-explicit-any": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
    },
  },
);
