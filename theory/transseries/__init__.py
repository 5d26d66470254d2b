"""The room of transseries: their arithmetic, the rules from formulas, the criterion, waves."""
